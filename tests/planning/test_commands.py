"""The command lines, word by word."""

import shlex
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.parsers.run import Condition
from service.planning import commands
from service.planning.commands import Blocks, Place, Ranks, Site
from service.planning.planned import Launcher
from tests.planning.examples import HOSTILE

RANKS = Ranks(nodes=2, per_node=8)
BLOCKS = Blocks(block_bytes=8 << 20, transfer_bytes=4 << 20)
PATHS = st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=60).map(
    lambda text: f"/{text}"
)


@given(directory=PATHS, word=st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
def test_a_line_is_read_back_as_the_words_it_was_made_of(directory: str, word: str) -> None:
    root = directory.rstrip("/")
    command = Site(directory, "folder", Launcher.MPIRUN).command("", ["ior", Place("a/b"), word, Place()])
    assert command.argv == ["ior", f"{root}/folder/a/b", word, f"{root}/folder"]
    assert shlex.split(command.line) == command.argv


def test_without_a_directory_the_shell_fills_it_in() -> None:
    command = Site(None, "folder", Launcher.MPIRUN).command("", ["ls", Place("it's")])
    assert command.argv == ["ls", "$STALLBUDGET_DIRECTORY/folder/it's"]
    assert command.line == """ls "$STALLBUDGET_DIRECTORY"/'folder/it'"'"'s'"""


def test_mpirun_starts_so_many_ranks_on_each_node() -> None:
    assert commands.launch(Launcher.MPIRUN, RANKS) == ["mpirun", "-n", "16", "--map-by", "ppr:8:node"]
    assert commands.launch(Launcher.MPIRUN, RANKS, beside=True)[-2:] == ["--bind-to", "none"]


def test_srun_starts_them_likewise() -> None:
    words = ["srun", "--nodes=2", "--ntasks=16", "--ntasks-per-node=8"]
    assert commands.launch(Launcher.SRUN, RANKS) == words
    assert commands.launch(Launcher.SRUN, RANKS, beside=True) == [*words, "--overlap"]


def test_a_write_is_synced_and_its_repetitions_have_files_of_their_own() -> None:
    words = commands.ior_write(
        Launcher.SRUN, RANKS, BLOCKS, file="data", repetitions=3, result="a.json", keep=True
    )
    assert words[4:] == [
        *("ior", "-a", "POSIX", "-F", "-w", "-e", "-k", "-m", "-i", "3", "-b", "8388608", "-t", "4194304"),
        *("-o", Place("data"), "-O", "summaryFormat=JSON", "-O", "summaryFile=a.json"),
    ]


def test_a_write_that_keeps_nothing_removes_its_files() -> None:
    words = commands.ior_write(
        Launcher.SRUN, RANKS, BLOCKS, file="data", repetitions=3, result=None, keep=False
    )
    assert not {"-k", "-m", "-O"} & set(words)


def test_a_read_is_reordered_and_keeps_what_it_reads() -> None:
    blocks = Blocks(8 << 20, 4 << 20, segments=5)
    words = commands.ior_read(
        Launcher.SRUN, RANKS, blocks, file="data", repetitions=3, result="a.json", many_files=False
    )
    assert words[4:16] == [
        *("ior", "-a", "POSIX", "-F", "-r", "-C", "-k", "-i", "3", "-b", "8388608", "-t"),
    ]
    assert words[17:19] == ["-s", "5"]
    assert "-e" not in words


def test_the_load_reads_past_the_page_cache_beside_the_other_job() -> None:
    words = commands.ior_reader(Launcher.SRUN, Ranks(2, 1), BLOCKS, file="load")
    assert words[3:5] == ["--ntasks-per-node=1", "--overlap"]
    assert "--posix.odirect" in words
    assert "-w" not in words


def test_mdtest_makes_and_removes_files_in_one_folder() -> None:
    words = commands.mdtest_create(Launcher.SRUN, RANKS, files_per_rank=3, repetitions=3, folder="md")
    assert words[4:] == ["mdtest", "-F", "-C", "-r", "-n", "3", "-i", "3", "-d", Place("md")]


@pytest.mark.parametrize("launcher", list(Launcher))
def test_torchrun_stands_alone_on_one_node(launcher: Launcher) -> None:
    words = commands.torchrun(launcher, Ranks(1, 8), script="train.py")
    assert words == ["torchrun", "--nnodes=1", "--nproc-per-node=8", "--standalone", "train.py"]


def test_torchrun_on_several_nodes_meets_at_the_first() -> None:
    words = commands.torchrun(Launcher.SRUN, RANKS, script="train.py")
    assert words[:3] == ["srun", "--nodes=2", "--ntasks-per-node=1"]
    assert words[3:] == commands.torchrun(Launcher.MPIRUN, RANKS, script="train.py")
    assert "--nnodes=2" in words


def test_a_post_carries_the_label_and_the_conditions() -> None:
    words = commands.post(
        url="http://h:1/a",
        scenario_id=UUID(int=1),
        result="a.json",
        storage_label=HOSTILE,
        conditions=[Condition.UNDER_READ_LOAD],
    )
    address, _, query = words[-1].partition("?")
    assert address == f"http://h:1/a/v1/scenarios/{UUID(int=1)}/benchmark-runs"
    assert set(query) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789%-_.~=&")
    assert query.endswith("&conditions=under_read_load")
    assert words[:-1] == [
        *(
            "curl",
            "-sS",
            "-g",
            "--connect-timeout",
            "20",
            "--max-time",
            "300",
            "--config",
            "-",
            "-o",
            "a.receipt.json",
            "-w",
            "%{http_code}\\n",
            "--data-binary",
            "@a.json",
        ),
    ]


def test_a_post_without_tags_has_no_query() -> None:
    words = commands.post(
        url="http://h:1", scenario_id=UUID(int=1), result="a.txt", storage_label=None, conditions=[]
    )
    assert words[-1] == f"http://h:1/v1/scenarios/{UUID(int=1)}/benchmark-runs"
