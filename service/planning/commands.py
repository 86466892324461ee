"""The command lines of the tests, word by word, and as one line that a shell reads back as those words.

What comes from outside (a path, a label, an address) is one word of a command, never a part of its syntax.
"""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote
from uuid import UUID

from service.parsers.run import Condition
from service.planning.planned import Command, Launcher

DIRECTORY_VARIABLE = "STALLBUDGET_DIRECTORY"
"""The shell variable that says where to write, where the plan does not."""

CHECKPOINTS_SUFFIX = "-dcp"
"""What the name of the folder that the training job saves in ends with."""

READER_REPETITIONS = 100_000
"""Passes of the job that reads while another is measured: more than it will come to before it is ended."""


@dataclass(frozen=True, slots=True)
class Place:
    """A path below the folder that the tests make for themselves; empty: that folder.

    Attributes:
        name: The path below it.
        of_checkpoints: Below the folder beside it, where the training job saves.
    """

    name: str = ""
    of_checkpoints: bool = False


@dataclass(frozen=True, slots=True)
class Site:
    """Where and by what the tests run.

    Attributes:
        directory: An absolute path on the storage under test; None leaves it to the shell's variable.
        folder: The name of the tests' own folder there.
        launcher: What starts the ranks.
    """

    directory: str | None
    folder: str
    launcher: Launcher

    def command(self, purpose: str, words: Sequence[str | Place]) -> Command:
        """Return a command of words and places."""
        return Command(
            purpose=purpose,
            argv=[self.path(word) if isinstance(word, Place) else word for word in words],
            line=" ".join(
                self.quoted(word) if isinstance(word, Place) else shlex.quote(word) for word in words
            ),
        )

    def path(self, place: Place) -> str:
        """Return a place as a path; it begins with the variable where the directory is left to it."""
        base = self.directory.rstrip("/") if self.directory is not None else f"${DIRECTORY_VARIABLE}"
        return f"{base}/{self._below(place)}"

    def quoted(self, place: Place) -> str:
        """Return a place as a word of a shell's line."""
        if self.directory is not None:
            return shlex.quote(self.path(place))
        return f'"${DIRECTORY_VARIABLE}"/{shlex.quote(self._below(place))}'

    def _below(self, place: Place) -> str:
        folder = f"{self.folder}{CHECKPOINTS_SUFFIX}" if place.of_checkpoints else self.folder
        return f"{folder}/{place.name}" if place.name else folder


@dataclass(frozen=True, slots=True)
class Ranks:
    """How many ranks start, and how they spread."""

    nodes: int
    per_node: int

    @property
    def count(self) -> int:
        """All of them."""
        return self.nodes * self.per_node


@dataclass(frozen=True, slots=True)
class Blocks:
    """What each rank of IOR moves. [B]"""

    block_bytes: int
    transfer_bytes: int
    segments: int = 1

    @property
    def rank_bytes(self) -> int:
        """All that one rank moves. [B]"""
        return self.block_bytes * self.segments


def launch(launcher: Launcher, ranks: Ranks, *, beside: bool = False) -> list[str]:
    """Return what goes before a program to start it on the ranks; `beside` another job on the same nodes."""
    if launcher is Launcher.SRUN:
        words = [
            "srun",
            f"--nodes={ranks.nodes}",
            f"--ntasks={ranks.count}",
            f"--ntasks-per-node={ranks.per_node}",
        ]
        return [*words, "--overlap"] if beside else words
    words = ["mpirun", "-n", str(ranks.count), "--map-by", f"ppr:{ranks.per_node}:node"]
    # Bound ranks of two jobs would sit on the same cores.
    return [*words, "--bind-to", "none"] if beside else words


def ior_write(
    launcher: Launcher,
    ranks: Ranks,
    blocks: Blocks,
    *,
    file: str,
    repetitions: int,
    result: str | None,
    keep: bool,
) -> list[str | Place]:
    """Return IOR writing a file for each rank, synced.

    Each repetition writes files of its own where they are kept (`-m`), so that the repetitions of a read after it do
    not find in memory what the one before read.
    """
    kept = [*(["-k"] if keep else []), *(["-m"] if keep and repetitions > 1 else [])]
    return [
        *launch(launcher, ranks),
        *("ior", "-a", "POSIX", "-F", "-w", "-e"),
        *kept,
        *_amount(blocks, repetitions),
        "-o",
        Place(file),
        *_result(result),
    ]


def ior_read(
    launcher: Launcher,
    ranks: Ranks,
    blocks: Blocks,
    *,
    file: str,
    repetitions: int,
    result: str,
    many_files: bool,
) -> list[str | Place]:
    """Return IOR reading such files back, each rank what a rank of another node wrote (`-C`), and keeping them."""
    return [
        *launch(launcher, ranks),
        *("ior", "-a", "POSIX", "-F", "-r", "-C", "-k"),
        *(["-m"] if many_files else []),
        *_amount(blocks, repetitions),
        "-o",
        Place(file),
        *_result(result),
    ]


def ior_reader(launcher: Launcher, ranks: Ranks, blocks: Blocks, *, file: str) -> list[str | Place]:
    """Return IOR reading files over and over, past the clients' caches, as a load beside another job."""
    return [
        *launch(launcher, ranks, beside=True),
        *("ior", "-a", "POSIX", "-F", "-r", "-k"),
        *_amount(blocks, READER_REPETITIONS),
        "--posix.odirect",
        "-o",
        Place(file),
    ]


def mdtest_create(
    launcher: Launcher, ranks: Ranks, *, files_per_rank: int, repetitions: int, folder: str
) -> list[str | Place]:
    """Return mdtest making and removing the files of a save, all in one folder, as a checkpoint has them."""
    return [
        *launch(launcher, ranks),
        *("mdtest", "-F", "-C", "-r", "-n", str(files_per_rank), "-i", str(repetitions)),
        "-d",
        Place(folder),
    ]


def torchrun(launcher: Launcher, ranks: Ranks, *, script: str) -> list[str]:
    """Return what starts a training script on the ranks."""
    words = ["torchrun", f"--nnodes={ranks.nodes}", f"--nproc-per-node={ranks.per_node}"]
    if ranks.nodes == 1:
        return [*words, "--standalone", script]
    words += ["--rdzv-backend=c10d", "--rdzv-endpoint=FIRST_NODE:29500", script]
    if launcher is Launcher.SRUN:
        return ["srun", f"--nodes={ranks.nodes}", "--ntasks-per-node=1", *words]
    return words


def stripe(count: int, folder: Place) -> list[str | Place]:
    """Return what gives the files of a folder so many objects each, on Lustre."""
    return ["lfs", "setstripe", "-c", str(count), folder]


def remove(*places: Place) -> list[str | Place]:
    """Return what removes folders with all that is in them."""
    return ["rm", "-rf", "--", *places]


KEY_VARIABLE = "STALLBUDGET_API_KEY"
"""The shell's variable that holds the key of a service that needs one."""


def key_to_curl(variable: str) -> str:
    """Return what prints the variable's key as a line of a curl configuration; nothing where it holds none.

    On curl's standard input the key stands in no list of processes, as an argument would; printf is the shell's own.
    """
    header = r"header = \"Authorization: Bearer %s\"\n"
    return f'printf "${{{variable}:+{header}}}" "${{{variable}:-}}"'


def post(
    *, url: str, scenario_id: UUID, result: str, storage_label: str | None, conditions: Sequence[Condition]
) -> list[str]:
    """Return the curl that posts a result, prints the HTTP status, and keeps the answer in a file beside it.

    It reads more of its options, those that hold a key, from standard input.
    """
    parameters = [f"storage_label={quote(storage_label, safe='')}"] if storage_label is not None else []
    parameters += [f"conditions={condition}" for condition in conditions]
    query = f"?{'&'.join(parameters)}" if parameters else ""
    return [
        # A service that does not answer must not use up the time of the tests after it.
        *("curl", "-sS", "-g", "--connect-timeout", "20", "--max-time", "300"),
        *("--config", "-"),
        *("-o", receipt(result)),
        *("-w", "%{http_code}\\n"),
        *("--data-binary", f"@{result}"),
        f"{url}/v1/scenarios/{scenario_id}/benchmark-runs{query}",
    ]


def receipt(result: str) -> str:
    """Return the name of the file that keeps the answer to a result."""
    return f"{result.rpartition('.')[0]}.receipt.json"


def _amount(blocks: Blocks, repetitions: int) -> list[str]:
    words = ["-i", str(repetitions), "-b", str(blocks.block_bytes), "-t", str(blocks.transfer_bytes)]
    return [*words, "-s", str(blocks.segments)] if blocks.segments > 1 else words


def _result(result: str | None) -> list[str]:
    """Return what makes IOR write its result into a file: on standard output log lines would fall among it."""
    return [] if result is None else ["-O", "summaryFormat=JSON", "-O", f"summaryFile={result}"]
