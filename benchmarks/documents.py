"""`python -m benchmarks.documents HOW FILE`: reads one file in this process, and prints what it took.

The parsers are measured on documents of 1, 10 and 100 MB, made from real outputs by repeating their rows, runs,
jobs, operations or ranks as the tool would have written more of them. Each is read in a process of its own, and
so is the same file by what the language itself has for it: `json.loads`, or `str.splitlines`.
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent.parent / "tests" / "data"
MEGABYTE = 1_000_000
SIZES = (1, 10, 100)
"""Of the documents. [MB]"""

# Documents of about so many bytes. No more runs than a parser takes of one document: beyond that each run is longer.

MOST_RUNS = 800


def _real(name: str) -> str:
    return (DATA / "benchmarks" / name).read_text("utf-8")


def _runs(size: int, made: Callable[[int], str]) -> str:
    """Return a log of runs, each as `made` makes one of about so many bytes; 0 for one as it is."""
    run = made(0)
    count = max(1, size // len(run))
    return run * count if count <= MOST_RUNS else made(size // MOST_RUNS) * MOST_RUNS


def _ior_text_run(size: int) -> str:
    """Return one run of IOR with so many repetitions."""
    text = _real("ior-4.0-posix-fpp-2nodes-write-read-3reps.txt")
    lines = text.splitlines()
    rows = [line for line in lines if line.startswith(("write ", "read ")) and line[-4:] in _ITERATIONS]
    turns = max(1, size // sum(map(len, rows)))
    heading, _, rest = text.partition("\n".join(rows))
    more = (f"{row[:-4].rstrip()} {int(row[-4:]) + 3 * turn:<4}" for turn in range(turns) for row in rows)
    return (
        heading.replace("repetitions         : 3", f"repetitions         : {3 * turns}")
        + "\n".join(more)
        + rest.replace("   8   4    3 ", f"   8   4    {3 * turns} ")
    )


_ITERATIONS = ("0   ", "1   ", "2   ")


def _ior_json_run(size: int) -> str:
    """Return one run of IOR with so many repetitions, in IOR's own layout."""
    text = _real("ior-4.0-posix-fpp-write-read-5reps.json")
    head, opening, rest = text.partition('"Results": [\n')
    rows, closing, tail = rest.partition("]\n")
    turns = max(1, size // len(rows))
    head = head.replace('"repetitions": 5', f'"repetitions": {5 * turns}')
    tail = tail.replace('"repetitions": 5', f'"repetitions": {5 * turns}')
    return head + opening + "\n, \n".join([rows] * turns) + closing + tail


def _mdtest_run(size: int) -> str:
    """Return one run of mdtest whose verbose lines are so many."""
    text = _real("mdtest-4.0-print-all-procs-verbose1.txt")
    start = text.index("V-1: Rank   0 Line   439 Entering")
    end = text.index("V-1: Rank   0 Line  2015", start)
    return text[:start] + text[start:end] * max(1, size // (end - start)) + text[end:]


def _io500_run(size: int) -> str:
    """Return one run of IO500 in a job's log that is so long."""
    waiting = "srun: job 4711 queued and waiting for resources\n"
    return waiting * (size // len(waiting)) + _real("io500-sc25dev-debug-result_summary.txt")


def _elbencho_run(name: str) -> Callable[[int], str]:
    """Return what makes one run of elbencho with so many iterations."""

    def made(size: int) -> str:
        rows = _real(name).removeprefix(_ELBENCHO_HEADING)
        count = max(1, size // len(rows))
        for quote in ('"', r"\""):
            rows = rows.replace(
                f" {quote}-b{quote} ", f" {quote}-i{quote} {quote}{count}{quote} {quote}-b{quote} "
            )
        return rows * count

    return made


_ELBENCHO_HEADING = _real("elbencho-3.1-dirs-fpp-write-read-delete.csv").partition("\n")[0] + "\n"


def ior_csv(size: int) -> str:
    """Return the CSV of one run with so many repetitions."""
    heading, *rows = _real("ior-4.0-posix-fpp-write-read-3reps.csv").splitlines()
    turns = range(size // sum(map(len, rows)))
    split = [row.rpartition(",") for row in rows]
    return "\n".join(
        [heading, *(f"{row},{int(at) + 3 * turn}" for turn in turns for row, _, at in split), ""]
    )


def ior_rank_csv(size: int) -> str:
    """Return the details of a thousand ranks in so many repetitions."""
    heading, *rows = _real("ior-4.0-rank-details.csv").splitlines()
    split = [row.split(",", 2) for row in rows]
    blocks = [
        "\n".join(
            f"{access},{rank},{figures}" for rank in range(1000) for access, _, figures in [block[rank % 4]]
        )
        for block in (split[:4], split[4:8])
    ]
    return "\n".join([heading, *(blocks * max(1, size // sum(map(len, blocks)))), ""])


def fio_json(size: int) -> str:
    """Return the document of a section with so many jobs."""
    text = _real("fio-3.33-seqwrite-4jobs-perjob.json")
    start, end = text.index("    {\n"), text.index("\n  ],")
    turns = max(1, size // (end - start))
    jobs = text[start:end].replace('"numjobs" : "4"', f'"numjobs" : "{4 * turns}"')
    return text[:start] + ",\n".join([jobs] * turns) + text[end:]


def dlio_summary(size: int) -> str:
    """Return the summary of a run on so many hosts: its lists by host are all that grows."""
    value = json.loads((DATA / "dcp" / "foreign" / "dlio-both.summary.json").read_text("utf-8"))
    value["num_hosts"] = value["num_accelerators"] = hosts = max(1, size // 60)
    for key in ("host_cpu_count", "potential_caching", "host_memory_GB"):
        value[key] *= hosts
    return json.dumps(value, indent=4)


def dcp_timing(size: int) -> str:
    """Return a document of 256 ranks with so many operations."""
    value = json.loads((DATA / "dcp" / "w8-threads.json").read_text("utf-8"))
    ranks = 256
    value |= {"world_size": ranks, "nodes": ranks // 8}
    made: list[dict[str, Any]] = []
    for operation in value["operations"]:
        turns, records = ranks // 8, operation["ranks"]
        operation["ranks"] = [
            {**record, "rank": record["rank"] + 8 * turn} for turn in range(turns) for record in records
        ]
        for key in ("bytes_total", "checkpoint_bytes", "files_total", "saved_world_size"):
            if key in operation:
                operation[key] *= turns
        made.append(operation)
    value["operations"] = made * max(1, size // len(json.dumps(made, indent=1)))
    return json.dumps(value, indent=1)


@dataclass(frozen=True, slots=True)
class Made:
    """One kind of large document.

    Attributes:
        format: What it is to be recognised as.
        of: What there is much of.
        make: Makes one of about so many bytes.
        is_json: Whether `json.loads` reads it.
    """

    format: str
    of: str
    make: Callable[[int], str]
    is_json: bool = False


_ELBENCHO = "elbencho-3.1-dirs-fpp-write-read-delete"

DOCUMENTS = (
    Made("ior-text", "runs", lambda size: _runs(size, _ior_text_run)),
    Made("ior-text", "repetitions", _ior_text_run),
    Made("ior-json", "runs", lambda size: _runs(size, _ior_json_run)),
    Made("ior-json", "repetitions", _ior_json_run, is_json=True),
    Made("ior-csv", "repetitions", ior_csv),
    Made("ior-rank-csv", "ranks", ior_rank_csv),
    Made("mdtest-text", "runs", lambda size: _runs(size, _mdtest_run)),
    Made("io500-summary", "runs", lambda size: _runs(size, _io500_run)),
    Made("fio-json", "jobs", fio_json, is_json=True),
    Made("elbencho-json", "runs", lambda size: _runs(size, _elbencho_run(f"{_ELBENCHO}.json"))),
    Made(
        "elbencho-csv",
        "runs",
        lambda size: _ELBENCHO_HEADING + _runs(size, _elbencho_run(f"{_ELBENCHO}.csv")),
    ),
    Made("dlio-summary", "hosts", dlio_summary, is_json=True),
    Made("dcp-timing", "operations", dcp_timing, is_json=True),
)


# Measuring them


@dataclass(frozen=True, slots=True)
class Taken:
    """What it took to read one document.

    Attributes:
        size: Its size. [B]
        seconds: Processor time.
        peak: By how much the process grew at most, from before it had the document. [B]
    """

    size: int
    seconds: float
    peak: int

    @property
    def rate(self) -> float:
        """Megabytes a second."""
        return self.size / MEGABYTE / self.seconds


def measurements() -> Iterator[tuple[Made, list[tuple[Taken, Taken]]]]:
    """Yield for each kind of document what its parser took and what the language took, by size."""
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "document")
        for made in DOCUMENTS:
            found = []
            for size in SIZES:
                _in_its_own_process("make", file, made.format, made.of, str(size * MEGABYTE))
                plain = "loads" if made.is_json else "splitlines"
                ours, theirs = (_in_its_own_process(how, file) for how in (made.format, plain))
                found.append((Taken(**json.loads(ours)), Taken(**json.loads(theirs))))
            yield made, found


def _in_its_own_process(*words: str) -> str:
    # The peak of a process counts from that of the one that started it: here a shell, which is small.
    command = ["/bin/sh", "-c", '"$@"; exit $?', "sh", sys.executable, "-m", "benchmarks.documents", *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


_PEAK_UNIT = 1 if sys.platform == "darwin" else 1024


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _PEAK_UNIT


def _reader(how: str) -> Callable[[bytes], object]:
    if how == "loads":
        return json.loads
    if how == "splitlines":
        return lambda body: body.decode().splitlines()
    from service.parsers import register  # only here: most of these processes have no use for it

    def read(body: bytes) -> object:
        record = register.parse(body)
        assert record.format == how
        return record

    return read


def main(how: str, file: str, *what: str) -> None:
    """Read a file as a format, or by `loads` or `splitlines`, and print what it took; or `make` it."""
    if how == "make":
        format, of, size = what
        made = next(each for each in DOCUMENTS if (each.format, each.of) == (format, of))
        Path(file).write_text(made.make(int(size)), "utf-8")
        return
    read = _reader(how)
    before = _peak()
    body = Path(file).read_bytes()
    started = time.process_time()
    held = read(body)  # kept, so that the peak has all of it
    seconds = time.process_time() - started
    print(json.dumps({"size": len(body), "seconds": seconds, "peak": _peak() - before}))
    del held


if __name__ == "__main__":
    main(*sys.argv[1:])
