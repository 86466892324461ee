"""Finding and cutting out the environment dump that IOR prints with `-vvv`.

The dump holds every variable of the job, tokens included. It is cut before anything else looks at the text,
so that none of it can reach a record, a message or the store.
"""

import codecs
import re
from collections.abc import Sequence

from service.parsers.document import Document
from service.parsers.ior_prefix import line_prefix, unprefixed
from service.parsers.measurement import Doubt, DoubtCode

_START = "STARTING ENVIRON LOOP"
_END = "ENDING ENVIRON LOOP"
_OF_IOR = re.compile(
    r"(?:IOR-[0-9]|Began\s*:|Run began:|Command line\b|Machine\s*:|Start time skew|TestID\s*:|StartTime\s*:"
    r"|FS\s*:|Participating tasks|Options:|Summary:|Results:|Test [0-9]+ started:|access\s+bw\(|Operation\s+Max"
    r'|"(?:Version|Began|Command line|Machine|tests|TestID|StartTime|Parameters|Options|Results)"\s*:)'
)
"""How lines of IOR's own begin, which bound a dump of which one marker was lost."""
_ASSIGNMENT = re.compile(r"\s{0,20}[A-Za-z_][A-Za-z0-9_]{0,200}=")
"""How a line of the environment begins. IOR's own set-up has blanks around its equals signs, or colons."""


def environment(lines: Sequence[str]) -> list[range]:
    """Return the stretches of lines that are an environment dump, markers included.

    A dump without its end marker reaches over the last line that sets a variable to the next line that is IOR's
    own, else to the end: a variable of several lines may hold one that looks like IOR's. One without its start
    marker reaches back to the last line that is.
    """
    found: list[range] = []
    free = 0  # the first line that no dump has taken
    start: int | None = None
    for number, line in enumerate(lines):
        if start is None and _START in line:
            start = number
        elif _END in line:
            if start is None:
                start = number
                prefix = _prefix(line, _END)
                while start > free and not _is_of_ior(lines[start - 1], prefix):
                    start -= 1
            found.append(range(start, number + 1))
            start, free = None, number + 1
    if start is not None:
        prefix = _prefix(lines[start], _START)
        set_ = [at for at in range(start + 1, len(lines)) if _ASSIGNMENT.match(unprefixed(lines[at], prefix))]
        rest = range(set_[-1] + 1 if set_ else start + 1, len(lines))
        found.append(range(start, next((at for at in rest if _is_of_ior(lines[at], prefix)), len(lines))))
    return found


def _prefix(line: str, marker: str) -> re.Pattern[str] | None:
    return line_prefix(line[: line.index(marker)])


def _is_of_ior(line: str, prefix: re.Pattern[str] | None) -> bool:
    # From its beginning: a variable may hold such words.
    return _OF_IOR.match(unprefixed(line, prefix).lstrip(" \t{,")) is not None


def blanked(document: Document) -> tuple[Document, bool]:
    """Return the document with every dump emptied, so that line numbers stay, and whether there was one."""
    if _START not in document.text and _END not in document.text:
        return document, False
    lines = document.lines
    for dump in environment(lines):
        lines[dump.start : dump.stop] = [""] * len(dump)
    return Document("\n".join(lines)), True


def removed() -> Doubt:
    """Return the doubt of a document that held a dump."""
    return Doubt(
        code=DoubtCode.ENVIRONMENT_REMOVED,
        message="The file held the job's environment variables (-vvv), which were cut out and not stored; "
        "renew any secret among them, and use -vv.",
    )


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
