"""elbencho's CSV output (`--csvfile`): one line a phase, whole MiB/s, rounded down.

The last column is the command with its quotes unescaped; elbencho takes the commas out of it and of the label,
so that plain splitting at commas is right. Columns go by the heading, which `--nocsvlabels` leaves out.
"""

from service.parsers import elbencho
from service.parsers.document import Document
from service.parsers.elbencho import Phase
from service.parsers.ior import Place, refusal
from service.parsers.ior_prefix import line_prefix, unprefixed
from service.parsers.measurement import Record
from service.units import MIB

NAME = "elbencho-csv"

_HEADING = "ISO date,label,path type,"
_REQUIRED = ("operation", "time ms [last]", "MiB/s [last]", "MiB [last]")
_NUMBERS = {
    "paths": "paths",
    "hosts": "hosts",
    "threads": "threads",
    "dirs": "dirs",
    "files": "files",
    "file size": "file_size",
    "block size": "block_size",
}
_PATH_TYPES = frozenset({"dir", "file", "blockdev", "bucket", "object", "hdfs"})


def recognises(document: Document) -> bool:
    """Tell whether a line is the heading of elbencho's CSV."""
    text = document.text
    at = text.find(_HEADING)
    return at >= 0 and at - (text.rfind("\n", 0, at) + 1) <= 80


def parse(document: Document) -> Record:
    """Return what elbencho's CSV output holds.

    Raises:
        UnreadableDocument: `unknown_columns`, `bad_row`, `missing_key`, `bad_number`, `inconsistent_row`,
            `contradictory_setup`, `no_results`; always with the line.
    """
    phases: list[Phase] = []
    text_lines: list[int] = []
    cut_line: int | None = None
    columns: list[str] = []
    prefix = None
    last = document.last_number
    for number, received in document.numbered():
        place = Place(line=number)
        if _HEADING in received and not columns:
            prefix = line_prefix(received[: received.index(_HEADING)])
        line = unprefixed(received, prefix).strip()
        if not line:
            continue
        if line.startswith(_HEADING):
            if columns and line.split(",") != columns:
                raise refusal(
                    "unknown_columns", "heads other columns than before; post one file per version.", place
                )
            columns = _columns(line, place)
        elif not columns or (line.count(",") < len(columns) - 1 and _is_text(line)):
            text_lines.append(number)
        elif number == last and (line.count(",") < len(columns) - 1 or _ends_early(line, columns, phases)):
            cut_line = number
        else:
            phases.append(_phase(line, columns, place))
    return elbencho.record(NAME, phases, cut_line=cut_line, text_lines=text_lines, hint="--csvfile")


def _columns(line: str, place: Place) -> list[str]:
    columns = line.split(",")
    missing = [name for name in _REQUIRED if name not in columns]
    if missing or len(set(columns)) != len(columns):
        raise refusal(
            "unknown_columns",
            f"heads columns without {missing[0]!r}; post the file as elbencho wrote it."
            if missing
            else "heads a column twice; post the file as elbencho wrote it.",
            place,
        )
    return columns


def _is_text(line: str) -> bool:
    """Tell a line of a log from a row that lost a part: a row begins with its date."""
    return elbencho.date(line.partition(",")[0]) is None and line.count(",") < 5


def _ends_early(line: str, columns: list[str], before: list[Phase]) -> bool:
    """Tell whether a row ends within its command, whose every word stands in quotes and which rows share."""
    if columns[-1] != "command":
        return False
    command = line.rpartition(",")[2]
    known = before[-1].command if before else None
    return (
        not command.endswith('"')
        or command.count('"') % 2 == 1
        or (known is not None and known != command and known.startswith(command))
    )


def _phase(line: str, columns: list[str], place: Place) -> Phase:
    """Return a phase; of one that is not read only what its neighbours need."""
    cells = line.split(",")
    if len(cells) != len(columns):
        raise refusal(
            "bad_row",
            f"has {len(cells)} columns below a heading of {len(columns)}; post the CSV as elbencho wrote it.",
            place,
        )
    named = dict(zip(columns, map(str.strip, cells), strict=True))
    name = named["operation"]
    started = elbencho.date(named["ISO date"])
    if started is None or named["path type"] not in _PATH_TYPES or not name:
        raise refusal(
            "bad_row",
            "does not hold a date, a path type and an operation where the heading says; post the CSV as elbencho "
            "wrote it.",
            place,
        )
    version, command = named.get("version") or None, named.get("command") or None

    def number(column: str) -> int | None:
        cell = named.get(column)
        return elbencho.whole(cell, column, place) if cell else None

    if name not in elbencho.OPERATIONS:
        return Phase(
            place=place,
            name=name,
            version=version,
            command=command,
            started=started,
            milliseconds=_unread(named["time ms [last]"]),
        )

    def flag(column: str) -> bool | None:
        cell = named.get(column)
        if cell not in (None, "", "0", "1"):
            raise refusal(
                "bad_value", f"has neither 0 nor 1 for {column}; post the CSV as elbencho wrote it.", place
            )
        return cell == "1" if cell else None

    rate, moved, first = (number(column) for column in ("MiB/s [last]", "MiB [last]", "MiB [first]"))
    return Phase(
        place=place,
        name=name,
        version=version,
        command=command,
        started=started,
        path_type=named["path type"],
        numbers={key: found for column, key in _NUMBERS.items() if (found := number(column)) is not None},
        direct=flag("direct IO"),
        random=flag("random"),
        milliseconds=number("time ms [last]"),
        first_milliseconds=number("time ms [first]"),
        rate=None if rate is None else rate * MIB,
        rate_step=MIB,
        bytes=None if moved is None else moved * MIB,
        bytes_step=MIB,
        first_bytes=None if first is None else first * MIB,
        calls_per_second=number("IOPS [last]"),
        entries=number("entries [last]"),
        entries_per_second=number("entries/s [last]"),
    )


def _unread(cell: str) -> int | None:
    return int(cell) if cell.isascii() and cell.isdigit() and len(cell) < 12 else None
