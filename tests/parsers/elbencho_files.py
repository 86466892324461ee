"""Phases of elbencho with known figures, written in either of its formats."""

import json
from typing import Any

MIB = 1 << 20

HEADING = (
    "ISO date,label,path type,paths,hosts,threads,dirs,files,file size,block size,direct IO,random,operation,"
    "time ms [first],time ms [last],entries/s [last],IOPS [last],MiB/s [last],entries [last],MiB [first],MiB [last],"
    "version,command"
)
COMMAND = '"elbencho" "-w" "-r" "-t" "4" "-s" "256m" "-b" "1m" "f1" "f2" '
COLUMNS = {
    "path type": "path_type", "paths": "paths", "hosts": "hosts", "threads": "threads", "dirs": "dirs",
    "files": "files", "file size": "file_size", "block size": "block_size", "direct IO": "direct_io",
    "random": "random_offsets",
}  # fmt: skip


def phase(
    name: str = "WRITE",
    *,
    command: str = COMMAND,
    microseconds: int = 1_000_500,
    mib: int = 512,
    first: dict[str, str] | None = None,
    last: dict[str, str | None] | None = None,
    **config: str | None,
) -> dict[str, Any]:
    """One phase as the JSON holds it: by default 512 MiB of two files in 1.0005 s, by four threads of a host.

    Args:
        name: Its kind.
        command: The command line.
        microseconds: How long it took.
        mib: What it moved; 0 for a phase that moves nothing.
        first: Figures of the first worker done.
        last: Changes to the figures of the last; None takes one out.
        config: Changes to the set-up; None takes an item out.
    """
    done: dict[str, str | None] = {"elapsed_time_ms": str(microseconds // 1000)}
    if mib:
        moved = mib * MIB
        done |= {
            "iops": str(mib * 1_000_000 // microseconds),
            "bytes/s": str(moved * 1_000_000 // microseconds),
            "bytes": str(moved),
        }
    done |= {"cpu%": "50", **(last or {})}
    setup: dict[str, str | None] = {
        "path_type": "file", "paths": "2", "hosts": "1", "threads": "4", "file_size": str(256 * MIB),
        "block_size": str(MIB), "direct_io": "false", "random_offsets": "false", "io_depth": "1",
        "version": "3.1-10", "command": command, **config,
    }  # fmt: skip
    return {
        "phase_type": name,
        "phase_id": "1b1d538f",
        "iso_start_date": "2026-11-29T16:45:09.351+0100",
        "config": {key: value for key, value in setup.items() if value is not None},
        "first_done": first or {"elapsed_time_ms": "1"},
        "last_done": {key: value for key, value in done.items() if value is not None},
    }


def as_json(*phases: dict[str, Any]) -> bytes:
    return "".join(json.dumps(each, separators=(",", ":")) + "\n" for each in phases).encode()


def as_csv(*phases: dict[str, Any]) -> bytes:
    lines = [HEADING]
    for each in phases:
        config, first, last = each["config"], each["first_done"], each["last_done"]

        def whole_mib(figures: dict[str, str], key: str) -> str:
            return str(int(figures[key]) // MIB) if key in figures else ""

        named = {
            column: {"true": "1", "false": "0"}.get(config.get(key, ""), config.get(key, ""))
            for column, key in COLUMNS.items()
        }
        named |= {
            "ISO date": each["iso_start_date"],
            "label": "",
            "operation": each["phase_type"],
            "time ms [first]": first["elapsed_time_ms"],
            "time ms [last]": last["elapsed_time_ms"],
            "entries/s [last]": last.get("entries/s", ""),
            "IOPS [last]": last.get("iops", ""),
            "MiB/s [last]": whole_mib(last, "bytes/s"),
            "entries [last]": last.get("entries", ""),
            "MiB [first]": whole_mib(first, "bytes"),
            "MiB [last]": whole_mib(last, "bytes"),
            "version": config.get("version", ""),
            "command": config.get("command", ""),
        }
        lines.append(",".join(named[column] for column in HEADING.split(",")))
    return ("\n".join(lines) + "\n").encode()
