"""Stands in for mpirun, srun, ior, mdtest and curl: it is what a script of a plan finds under these names.

Its first argument is the program's name. It takes the arguments that the real program takes, and refuses others. It
notes each call as a line of JSON in STAND_IN_NOTES, and does what the real one would do to files. What IOR and mdtest
print is the recorded output of a real run, with the size and the rates of this one put in.
"""

import argparse
import json
import os
import re
import signal
import sys
from pathlib import Path

DATA = Path(__file__).parent.parent / "data" / "benchmarks"
IOR_JSON = DATA / "ior-4.0-posix-fpp-2nodes-write-read-3reps.json"
MDTEST_TEXT = DATA / "mdtest-4.0-files-only-3iters.txt"
MIB = 2**20


def note(program: str, arguments: list[str]) -> None:
    """Write down a call."""
    with Path(os.environ["STAND_IN_NOTES"]).open("a") as notes:
        notes.write(json.dumps({"program": program, "argv": [program, *arguments]}) + "\n")


def launcher(program: str, arguments: list[str]) -> None:
    """Start a program once, and tell it for how many ranks on how many nodes."""
    parser = argparse.ArgumentParser(prog=program, allow_abbrev=False)
    if program == "mpirun":
        parser.add_argument("-n", dest="ranks", type=int, required=True)
        parser.add_argument("--map-by", required=True)
        parser.add_argument("--bind-to", choices=["none"])
    else:
        parser.add_argument("--nodes", type=int, required=True)
        parser.add_argument("--ntasks", dest="ranks", type=int, required=True)
        parser.add_argument("--ntasks-per-node", type=int, required=True)
        parser.add_argument("--overlap", action="store_true")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    told = parser.parse_args(arguments)
    if program == "mpirun":
        found = re.fullmatch(r"ppr:(\d+):node", told.map_by)
        assert found is not None
        per_node = int(found[1])
        nodes = told.ranks // per_node
    else:
        per_node, nodes = told.ntasks_per_node, told.nodes
    assert told.ranks == nodes * per_node
    if told.command == ["uname", "-n"]:
        if os.environ.get("STAND_IN_FAILS") == program:
            sys.exit("There are not enough slots available in the system")
        hosts = int(os.environ.get("STAND_IN_HOSTS", nodes))
        print("\n".join(f"node{1 + rank % hosts:02}" for rank in range(told.ranks)))
        return
    note(program, arguments)
    os.environ |= {"STAND_IN_NODES": str(nodes), "STAND_IN_RANKS": str(told.ranks)}
    sys.stdout.flush()
    os.execvp(told.command[0], told.command)  # noqa: S606 - as the real one does


def ior(arguments: list[str]) -> None:
    """Make or look for the files, and write the recorded result."""
    if arguments == ["--help"]:
        new = os.environ.get("STAND_IN_FAILS") != "old-ior"
        print("Synopsis ior\n\n" + "  --posix.odirect               Direct I/O Mode" * new)
        return
    parser = argparse.ArgumentParser(prog="ior", allow_abbrev=False)
    for flag in "FwrekmC":
        parser.add_argument(f"-{flag}", action="store_true")
    parser.add_argument("--posix.odirect", dest="odirect", action="store_true")
    parser.add_argument("-a", choices=["POSIX"], required=True)
    for size in "ibts":
        parser.add_argument(f"-{size}", type=int, required=size != "s", default=1)
    parser.add_argument("-o", required=True)
    parser.add_argument("-O", action="append", default=[])
    told = parser.parse_args(arguments)
    assert told.F
    assert told.w is not told.r
    assert told.b % told.t == 0
    assert "@" not in told.o
    told.O = dict(directive.split("=", 1) for directive in told.O)
    if told.w and os.environ.get("STAND_IN_PAUSES_AT", "") in told.o:
        pause()
    if os.environ.get("STAND_IN_FAILS") == "load-ends" and told.w and not told.k:
        while not Path("load.ended").exists():  # so that the load is over before this is
            os.sched_yield()
    if os.environ.get("STAND_IN_FAILS") == ("ior-write" if told.w else "ior-read"):
        sys.exit("ERROR: the disk is on fire")
    ranks, nodes = int(os.environ["STAND_IN_RANKS"]), int(os.environ["STAND_IN_NODES"])
    files = [
        Path(f"{told.o}.{rank:08}" + (f".{repetition}" if told.m else ""))
        for rank in range(ranks)
        for repetition in range(told.i if told.m else 1)
    ]
    for file in files:
        if told.w:
            file.write_bytes(b"data")
        elif not file.is_file():
            sys.exit(f'ERROR: open64("{file}", 0) failed: No such file or directory')
    if told.i > 1000:
        load()
        return
    if "summaryFile" in told.O:
        assert told.O["summaryFormat"] == "JSON"
        # As the real one: what stands before a comma is the name.
        Path(told.O["summaryFile"].split(",")[0]).write_text(ior_result(told, ranks, nodes, arguments))
        print(f"Writing output to {told.O['summaryFile']}")
    if told.w and not told.k:
        for file in files:
            file.unlink()


def ior_result(told: argparse.Namespace, ranks: int, nodes: int, arguments: list[str]) -> str:
    """Return the recorded result with this run's size, command and rate."""
    result = json.loads(IOR_JSON.read_text())
    operation = "write" if told.w else "read"
    moved = told.b * told.s * ranks
    seconds = max(round(moved / (float(os.environ["STAND_IN_GB_PER_SECOND"]) * 1e9), 4), 0.0001)
    mib = round(moved / seconds / MIB, 4)
    result["Command line"] = " ".join(["ior", *arguments])
    (test,) = result["tests"]
    test["Path"] = f"{told.o}.00000000"
    test["Parameters"] |= {
        "testFileName": told.o, "nodes": nodes, "tasksPerNode": ranks // nodes, "repetitions": told.i,
        "multiFile": int(told.m), "fsync": int(told.e), "readFile": int(told.r), "writeFile": int(told.w),
        "reorderTasks": int(told.C), "keepFile": int(told.k), "segmentCount": told.s, "transferSize": told.t,
        "blockSize": told.b,
    }  # fmt: skip
    test["Options"] |= {
        "test filename": told.o, "nodes": nodes, "tasks": ranks, "clients per node": ranks // nodes,
        "repetitions": told.i, "segments": told.s, "xfersize": f"{told.t} bytes", "blocksize": f"{told.b} bytes",
        "aggregate filesize": f"{moved} bytes",
        "ordering inter file": "constant task offset" if told.C else "no tasks offsets",
    }  # fmt: skip
    if not told.C:
        del test["Options"]["task offset"]
    row = next(each for each in test["Results"] if each["access"] == operation)
    row |= {
        "bwMiB": mib, "blockKiB": told.b / 1024, "xferKiB": told.t / 1024, "iops": round(moved / told.t / seconds, 4),
        "openTime": 0.0, "wrRdTime": seconds, "closeTime": 0.0, "totalTime": seconds,
    }  # fmt: skip
    test["Results"] = [row] * told.i
    summary = next(each for each in result["summary"] if each["operation"] == operation)
    summary |= {
        "segmentCount": told.s, "blockSize": told.b, "transferSize": told.t, "numTasks": ranks,
        "tasksPerNode": ranks // nodes, "repetitions": told.i, "reorderTasks": int(told.C), "MeanTime": seconds,
        "xsizeMiB": moved / MIB, "bwStdMIB": 0.0, "OPsSD": 0.0,
    }  # fmt: skip
    summary |= dict.fromkeys(("bwMaxMIB", "bwMinMIB", "bwMeanMIB"), mib)
    summary |= dict.fromkeys(("OPsMax", "OPsMin", "OPsMean"), round(moved / told.t / seconds, 4))
    result["summary"] = [summary]
    return json.dumps(result, indent=2)


def load() -> None:
    """Read until told to end, or as long as the test wants."""
    if os.environ.get("STAND_IN_FAILS") == "load":
        sys.exit("ERROR: O_DIRECT is not supported")
    print("access    bw(MiB/s)\nread      826.74     206.70     0.004838    69632      4096", flush=True)
    if os.environ.get("STAND_IN_FAILS") == "load-ends":
        return
    while True:
        signal.pause()


def pause() -> None:
    """Tell the test that something goes on, and wait for a signal; where the test asks for it."""
    place = os.environ.get("STAND_IN_PAUSES")
    if place:
        Path(place).write_text(f"{os.getpid()}\n")
        while True:
            signal.pause()


def mdtest(arguments: list[str]) -> None:
    """Print the recorded result."""
    parser = argparse.ArgumentParser(prog="mdtest", allow_abbrev=False)
    for flag in "FCr":
        parser.add_argument(f"-{flag}", action="store_true", required=True)
    for size in "ni":
        parser.add_argument(f"-{size}", type=int, required=True)
    parser.add_argument("-d", required=True)
    told = parser.parse_args(arguments)
    assert Path(told.d).is_dir()
    assert "@" not in told.d
    ranks, nodes = int(os.environ["STAND_IN_RANKS"]), int(os.environ["STAND_IN_NODES"])
    assert told.i == 3, "as many as were recorded"
    rate = float(os.environ["STAND_IN_CREATES_PER_SECOND"])
    text = MDTEST_TEXT.read_text()
    for pattern, put in (
        (r"with \d+ total task\(s\) on \d+ node", f"with {ranks} total task(s) on {nodes} node"),
        (
            r"Command line used: .*",
            "Command line used: mdtest " + " ".join(f"'{each}'" for each in arguments),
        ),
        (r"WARNING: .*\n", ""),  # of a phase that is not run here
        (r"Path                : .*", f"Path                : {told.d}"),
        (r"Nodemap: .*", "Nodemap: " + "1" * (ranks // nodes) + "0" * (ranks - ranks // nodes)),
        (r"\d+ tasks, \d+ files", f"{ranks} tasks, {ranks * told.n} files"),
        (r"File creation .*", f"File creation {rate:22.3f} {rate:14.3f} {rate:14.3f} {0:14.3f}"),
        (r"File (stat|read)  .*", lambda found: f"File {found[1]} {0:22.3f} {0:14.3f} {0:14.3f} {0:14.3f}"),
    ):
        text, count = re.subn(pattern, put if callable(put) else lambda _, put=put: put, text)
        assert count, pattern
    print(text)


def curl(arguments: list[str]) -> None:
    """Print the status that the test wants, keep an answer, and note the options that came on standard input."""
    given = sys.stdin.read()
    with Path(os.environ["STAND_IN_NOTES"] + ".stdin").open("a") as notes:
        notes.write(f"{given!r}\n")
    Path(arguments[arguments.index("-o") + 1]).write_text('{"detail": "as the test wants"}')
    status = os.environ["STAND_IN_STATUS"]
    if status == "none":
        sys.exit(7)
    print(status)


def lfs(_: list[str]) -> None:
    """Say nothing, as on Lustre."""


def main() -> None:
    """Be the program of the name by which this was called."""
    name, *arguments = sys.argv[1:]
    if name in ("mpirun", "srun"):
        launcher(name, arguments)
        return
    if arguments != ["--help"]:
        note(name, arguments)
    {"ior": ior, "mdtest": mdtest, "curl": curl, "lfs": lfs}[name](arguments)


if __name__ == "__main__":
    main()
