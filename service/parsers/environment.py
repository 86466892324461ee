"""Finding and cutting out the environment dump that IOR prints with `-vvv`.

The dump holds every variable of the job, tokens included. It is cut before anything else looks at the text,
so that none of it can reach a record, a message or the store.
"""

import codecs
import re
from collections.abc import Sequence

_START = "STARTING ENVIRON LOOP"
_END = "ENDING ENVIRON LOOP"
_OF_IOR = re.compile(
    r"(?:IOR-\d|Began\s*:|Run began:|Command line\b|Machine\s*:|Start time skew|TestID\s*:|StartTime\s*:"
    r"|FS\s*:|Participating tasks|Options:|Summary:|Results:|Test \d+ started:|access\s+bw\(|Operation\s+Max"
    r'|"(?:Version|Began|Command line|Machine|tests|TestID|StartTime|Parameters|Options|Results)"\s*:)'
)
"""Lines of IOR's own that bound a dump of which one marker was lost."""


def environment(lines: Sequence[str]) -> list[range]:
    """Return the stretches of lines that are an environment dump, markers included.

    A dump without its end marker reaches to the next line that is IOR's own, else to the end; one without
    its start marker reaches back likewise.
    """
    found: list[range] = []
    free = 0  # the first line that no dump has taken
    start: int | None = None
    anchor = 0  # just after the last line of IOR's own
    for number, line in enumerate(lines):
        if start is not None:
            if _END in line:
                found.append(range(start, number + 1))
                start, free, anchor = None, number + 1, number + 1
        elif _START in line:
            start = number
        elif _END in line:
            found.append(range(max(free, anchor), number + 1))
            free = anchor = number + 1
        elif _OF_IOR.search(line):
            anchor = number + 1
    if start is not None:
        end = next((at for at in range(start + 1, len(lines)) if _OF_IOR.search(lines[at])), len(lines))
        found.append(range(start, end))
    return found


def blanked(lines: Sequence[str]) -> tuple[list[str], bool]:
    """Return the lines with every dump emptied, so that line numbers stay, and whether there was one."""
    kept = list(lines)
    found = environment(kept)
    for dump in found:
        for number in dump:
            kept[number] = ""
    return kept, bool(found)


def without_environment(data: bytes) -> bytes:
    """Return the document without IOR's environment dump: what may be stored in place of the original.

    The bytes of a document without a dump come back unchanged.
    """
    encoding = "latin-1"  # maps every byte to itself, and UTF-8 keeps ASCII where it is
    for mark, name in (
        (codecs.BOM_UTF32_LE, "utf-32-le"),
        (codecs.BOM_UTF32_BE, "utf-32-be"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
    ):
        if data.startswith(mark):
            encoding = name
            break
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        return data
    if _START not in text and _END not in text:
        return data
    lines = re.split(r"(?<=\n)", text) if "\n" in text else re.split(r"(?<=\r)", text)
    dumps = environment(lines)
    dropped = {number for dump in dumps for number in dump}
    return "".join(line for number, line in enumerate(lines) if number not in dropped).encode(encoding)
