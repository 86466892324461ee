"""IOR's JSON output (`-O summaryFormat=JSON`), as IOR 3.3 and 4 write it.

On standard output log lines fall among it, paths are not escaped, and a killed job leaves it open. What
can be put right with certainty is, each with a doubt that says so, and then the text is read strictly. The
JSON of IOR 3.2 is broken beyond that.
"""

import bisect
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from json import dumps
from typing import Any

from service import strict_json
from service.errors import UnreadableDocument
from service.parsers import ior, ior_run
from service.parsers.document import Document
from service.parsers.ior import Figure, Halves, Place, Remarks, Row, Setup, Summary, refusal
from service.parsers.ior_log import is_log_line
from service.parsers.ior_prefix import line_prefix, unprefixed
from service.parsers.measurement import Doubt, DoubtCode, Measurement, Operation, Record, repetition_doubts
from service.parsers.own_time import began
from service.strict_json import pointer
from service.units import MIB

NAME = "ior-json"

_REPEATABLE = ("segmentCount", "blockSize", "transferSize")
"""What the summaries of IOR 3.3 hold twice."""

_OPERATIONS = {"write": Operation.WRITE, "read": Operation.READ}
_FIGURES = ("bwMiB", "iops", "blockKiB", "xferKiB", "openTime", "wrRdTime", "closeTime", "totalTime")
"""In the order of `ior.Halves`."""
_HALF = 0.00005
"""IOR's JSON has four decimals."""
_HALVES = Halves(*[_HALF] * len(_FIGURES))

_COMMAND_KEY = re.compile(r'"Command line"\s{0,4}:')
_BARE_NAN = re.compile(r'([ \t]{0,40}"[A-Za-z ]{1,40}": )(?:-?nan|-?inf)(,? ?)')
_STRING_LINE = re.compile(
    r'([ \t]{0,40}"(?:Command line|Machine|Began|testFileName|test filename|platform|hintsFileName'
    r'|options)": )"(.*)"(,? ?)'
)
_PATH_LINE = re.compile(r'(.{0,200}?, "Path": )"(.*)"(,"Capacity": ".*)')
_STRUCTURE = re.compile(r'"(?:[^"\\\n]|\\.)*"|[\[\]{}]')


def recognises(document: Document) -> bool:
    """Tell whether the text holds the keys of IOR's JSON, whole or damaged."""
    text = document.text
    return bool(_COMMAND_KEY.search(text)) and ('"Began"' in text or '"Version"' in text)


@dataclass(slots=True)
class _Mended:
    """What had to be put right before the text could be read.

    Attributes:
        log_lines: Lines that were dropped.
        string_lines: Lines of which a string was escaped.
        cut: Lines at which the runs begin whose end was missing.
        remarks: What the dropped lines said.
    """

    log_lines: list[int] = field(default_factory=list)
    string_lines: list[int] = field(default_factory=list)
    cut: set[int] = field(default_factory=set)
    remarks: Remarks = field(default_factory=Remarks)


def _loads(text: str) -> Any:  # noqa: ANN401 - whatever JSON holds
    return strict_json.loads(text, finite=False, repeatable=_REPEATABLE)


def parse(document: Document) -> Record:
    """Return what IOR's JSON output holds.

    Raises:
        UnreadableDocument: It cannot be read with certainty, contradicts itself, or holds nothing that was
            measured; with the line or the pointer.
    """
    if "Command line used:" in document.text or "Command line  " in document.text:
        raise UnreadableDocument(
            "mixed_formats",
            "The file holds both text and JSON output of IOR; post each run in a file of its own.",
        )
    mended = _Mended()
    values = _values(document, mended)
    made: list[Measurement] = []
    doubts: list[Doubt] = []
    moved = sorted(count for _, count in mended.remarks.moved_bytes)
    for at, (start, value) in enumerate(values):
        root = () if len(values) == 1 else (at,)
        run = _run(value, root, moved, fsync_ignored=mended.remarks.fsync_ignored, cut=start in mended.cut)
        ior_run.take(at, run, made, doubts)
    if not made:
        raise UnreadableDocument(
            "no_results",
            "No repetition of a write or read had finished when this IOR output ended; post that of a "
            "whole run.",
            pointer="#/tests",
        )
    doubts += _mending_doubts(mended, len(values))
    doubts += repetition_doubts(made)
    version = values[0][1].get("Version")
    ran_at = began(document.text)
    return Record(
        tool="ior",
        tool_version=version[:60] if isinstance(version, str) else None,
        format=NAME,
        ran_at=ran_at,
        ran_at_zone_assumed=True if ran_at is not None else None,
        measurements=made,
        doubts=ior.merged(doubts, len(made)),
    )


def _mending_doubts(mended: _Mended, runs: int) -> list[Doubt]:
    doubts: list[Doubt] = []
    if mended.log_lines:
        doubts.append(
            Doubt(
                code=DoubtCode.MIXED_LOG_LINES,
                message=f"{len(mended.log_lines)} log lines stood among the JSON and were dropped, the "
                f"first in line {mended.log_lines[0]}; use -O summaryFile=FILE and post that file.",
            )
        )
    if mended.string_lines:
        doubts.append(
            Doubt(
                code=DoubtCode.INVALID_JSON_STRING,
                message="A path with a backslash or quote made the JSON invalid in line "
                f"{mended.string_lines[0]}; its text was escaped, and a plain path would avoid it.",
            )
        )
    if runs > 1:
        doubts.append(
            Doubt(
                code=DoubtCode.SEVERAL_RUNS,
                message=f"The file holds {runs} IOR runs, all of which were read; check that they measured "
                "the same storage, or post them one by one.",
            )
        )
    remarks = mended.remarks
    return doubts + ior.incorrect_data(remarks.incorrect_lines) + ior.warnings(remarks.warning_lines)


# From lines to values


def _values(document: Document, mended: _Mended) -> list[tuple[int, dict[str, Any]]]:
    """Return the JSON objects that a document holds, one a run, each with the line before its first.

    Raises:
        UnreadableDocument: `not_json` and the other codes of `strict_json`, or `unsupported_version`.
    """
    if document.json is not None:
        return [(0, _object(document.json))]
    try:
        return [(0, _object(_loads(document.text)))]
    except strict_json.JsonFault as fault:
        if fault.code != "not_json":
            raise UnreadableDocument(
                fault.code, fault.detail, line=fault.line, pointer=fault.pointer
            ) from None
    return [(start, _object(_mend(piece, start, mended))) for start, piece in _pieces(document.lines, mended)]


def _object(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise UnreadableDocument(
            "not_json", "The document is no JSON object; post IOR's JSON as it was written."
        )
    return value


def _pieces(lines: list[str], mended: _Mended) -> list[tuple[int, list[str]]]:
    """Return the documents that follow each other, each with its lines' offset; log lines are dropped."""
    prefix: re.Pattern[str] | None = None
    pieces: list[tuple[int, list[str]]] = []
    closed = True  # the line before, logs aside, may end a document
    for number, received in enumerate(lines, start=1):
        if not pieces and prefix is None and received.rstrip().endswith("{") and '"' not in received:
            prefix = line_prefix(received.rstrip()[:-1])
        line = unprefixed(received, prefix)
        text = line.strip()
        # A run's object follows another without a comma; so would results of which the comma was lost.
        begins = text.startswith('{"') if text != "{" else _begins_run(lines, number)
        if begins and closed:
            pieces.append((number - 1, []))
        elif not pieces and text.startswith("IOR-") and "MPI Coordinated Test" in text:
            raise UnreadableDocument(
                "unsupported_version",
                "A banner before the JSON shows IOR 3.2, whose JSON is broken; post its text output, or "
                "use IOR 3.3 or later.",
                line=number,
            )
        if text and (not pieces or is_log_line(text)):
            ior.note(mended.remarks, text, number)
            mended.log_lines.append(number)
            line = ""
        elif text:
            closed = text == "}"
        if pieces:
            pieces[-1][1].append(line)
    if not pieces:
        raise UnreadableDocument(
            "not_json", "The JSON's opening brace is missing; post IOR's JSON as it was written.", line=1
        )
    _drop_epilogue(pieces[-1], mended)
    return pieces


def _begins_run(lines: list[str], at: int) -> bool:
    """Tell whether the lines from an index on go on as the first keys of a run do."""
    following = next((line for line in lines[at : at + 20] if line.strip()), "")
    return '"Version"' in following or '"Began"' in following


def _drop_epilogue(piece: tuple[int, list[str]], mended: _Mended) -> None:
    """Empty the lines at the end that are a job's, not IOR's."""
    start, lines = piece
    at = len(lines) - 1
    dropped: list[int] = []
    while at > 0 and not lines[at].lstrip().startswith(("{", "}", "[", "]", ",", '"')):
        if lines[at].strip():
            dropped.append(start + at + 1)
            ior.note(mended.remarks, lines[at].strip(), start + at + 1)
        lines[at] = ""
        at -= 1
    mended.log_lines += reversed(dropped)


def _mend(lines: list[str], start: int, mended: _Mended) -> Any:  # noqa: ANN401 - whatever JSON holds
    """Return the value of one document, put right where that can be done in one way only."""
    try:
        return _loads("\n".join(lines))
    except strict_json.JsonFault:
        pass
    for at, line in enumerate(lines):
        if "nan" in line or "inf" in line:
            bare = _BARE_NAN.fullmatch(line.rstrip("\r"))
            if bare:
                lines[at] = f"{bare[1]}null{bare[2]}"
        escaped = _escaped(line)
        if escaped is not None and escaped != line:
            lines[at] = escaped
            mended.string_lines.append(start + at + 1)
    text = "\n".join(lines)
    try:
        return _loads(text)
    except strict_json.JsonFault as fault:
        whole = _up_to_the_cut(text)
        if whole is not None:
            try:
                value = _loads(whole)
            except strict_json.JsonFault:
                pass
            else:
                mended.cut.add(start)
                return value
        number = None if fault.line is None else fault.line + start
        raise UnreadableDocument(
            fault.code,
            f"The JSON cannot be read{'' if number is None else f' from line {number} on'}: IOR mixes log "
            "output into it when it goes to the screen (above all with -v) and IOR 3.2 breaks it; use -O "
            "summaryFile=FILE without -v, or post the text output.",
            line=number,
            pointer=fault.pointer,
        ) from None


def _escaped(line: str) -> str | None:
    """Return a line whose string IOR does not escape, with it escaped; None for any other line."""
    whole = _STRING_LINE.fullmatch(line.rstrip("\r"))
    if whole:
        return f"{whole[1]}{dumps(whole[2], ensure_ascii=False)}{whole[3]}"
    if '"Path": ' not in line:
        return None
    path = _PATH_LINE.fullmatch(line.rstrip("\r"))
    # A path that holds the next key itself could end in more than one place.
    if path is None or line.count('","Capacity": "') > 1:
        return None
    return f"{path[1]}{dumps(path[2], ensure_ascii=False)}{path[3]}"


def _up_to_the_cut(text: str) -> str | None:
    """Return a text that ends too early, up to its last whole value and closed; None if it is not that."""
    open_brackets: list[str] = []
    end = 0
    closers = ""
    for token in _STRUCTURE.finditer(text):
        bracket = token[0]
        if bracket in "{[":
            open_brackets.append("}" if bracket == "{" else "]")
            if len(open_brackets) > strict_json.MAX_DEPTH:
                return None
        elif bracket in "}]":
            if not open_brackets or open_brackets.pop() != bracket:
                return None
            end = token.end()
            closers = "".join(reversed(open_brackets))
    return text[:end] + closers if open_brackets and end else None


# From values to a run

_Path = tuple[str | int, ...]


def _place(*path: str | int) -> Place:
    return Place(pointer=pointer(*path))


def _part(value: object, kind: type, path: _Path) -> Any:  # noqa: ANN401 - of that kind
    if not isinstance(value, kind):
        what = "an object" if kind is dict else "a list"
        raise refusal(
            "bad_structure", f"is not {what} as in IOR's JSON; post the file as IOR wrote it.", _place(*path)
        )
    return value


def _number(value: object, path: _Path) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e18:
        raise refusal(
            "bad_number", "is no positive decimal number; post the file as IOR wrote it.", _place(*path)
        )
    return float(value)


def _integer(of: dict[str, Any], key: str, path: _Path) -> int | None:
    """Return a whole number, or None where the key is absent or IOR says "(null)"."""
    value = of.get(key)
    if value is None or value == "(null)":
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 62:
        raise refusal("bad_number", "is no whole number; post the file as IOR wrote it.", _place(*path, key))
    return value


def _agreed(known: int | None, said: int | None, path: _Path) -> int | None:
    if known is not None and said is not None and known != said:
        raise refusal(
            "contradictory_setup",
            f"says {said} where the same test says {known} elsewhere; post one file of one run.",
            _place(*path),
        )
    return said if known is None else known


def _run(
    value: dict[str, Any], root: _Path, moved: Sequence[int], *, fsync_ignored: bool, cut: bool
) -> ior_run.Run:
    """Return the run that one object tells.

    Args:
        value: The object.
        root: Where it stands.
        moved: Byte counts that dropped lines state, in rising order.
        fsync_ignored: Whether a dropped line said that the back end has no fsync.
        cut: Whether its end was missing.
    """
    tests: list[ior_run.Test] = []
    summaries = _summaries(value, root)
    command = ior.command_line(value["Command line"] if isinstance(value.get("Command line"), str) else "")
    ids: set[int] = set()
    for at, test in enumerate(_part(value.get("tests"), list, (*root, "tests"))):
        path = (*root, "tests", at)
        made = _test(_part(test, dict, path), at, path, summaries, command, moved)
        made.setup.fsync_ignored = fsync_ignored
        if made.id in ids:
            raise refusal("duplicate_test", f"is test {made.id} of one run a second time.", _place(*path))
        ids.add(made.id)
        tests.append(made)
    for (id, _), (_, place, _) in summaries.items():
        if id not in ids:
            raise refusal("inconsistent_summary", f"sums up a test {id} that the file does not hold.", place)
    return ior_run.Run(
        tests=tests,
        finished="Finished" in value and not cut,
        cut="the JSON ends before it is closed" if cut else None,
    )


_Summaries = dict[tuple[int, Operation], tuple[dict[str, Any], Place, _Path]]


def _summaries(value: dict[str, Any], root: _Path) -> _Summaries:
    """Return the summary objects by test and operation.

    Raises:
        UnreadableDocument: `inconsistent_summary`: two for the same that differ.
    """
    found: _Summaries = {}
    for at, each in enumerate(_part(value.get("summary", []), list, (*root, "summary"))):
        path = (*root, "summary", at)
        summary = _part(each, dict, path)
        if not isinstance(summary.get("operation"), str):
            raise refusal(
                "bad_structure", "does not say its operation; post the file as IOR wrote it.", _place(*path)
            )
        operation = _OPERATIONS.get(summary["operation"])
        if operation is None:
            continue
        key = (_integer(summary, "TestID", path) or 0, operation)
        if key in found and found[key][0] != summary:
            raise refusal(
                "inconsistent_summary", "sums up what another object does with other figures.", _place(*path)
            )
        found.setdefault(key, (summary, _place(*path), path))
    return found


def _statistics(summary: dict[str, Any], path: _Path) -> tuple[Summary, bool]:
    """Return IOR's statistics, and whether one of them was nan or infinite."""
    nan = False

    def shown(key: str) -> Figure | None:
        nonlocal nan
        value = summary.get(key)
        if key in summary and (value is None or value in ("nan", "-nan", "inf", "-inf")):
            nan = True
            return None
        return None if value is None else Figure(_number(value, (*path, key)), _HALF)

    made = Summary(
        _place(*path),
        largest=shown("bwMaxMIB"),
        least=shown("bwMinMIB"),
        mean=shown("bwMeanMIB"),
        seconds_mean=shown("MeanTime"),
        calls=(shown("OPsMax"), shown("OPsMin"), shown("OPsMean")),
    )
    return made, nan


def _test(
    test: dict[str, Any],
    at: int,
    path: _Path,
    summaries: _Summaries,
    command: ior.CommandLine,
    moved: Sequence[int],
) -> ior_run.Test:
    given = _integer(test, "TestID", path)
    id = at if given is None else given
    parameters = _part(test.get("Parameters", {}), dict, (*path, "Parameters"))
    options = _part(test.get("Options", {}), dict, (*path, "Options"))
    of_test = {
        operation: summaries[id, operation]
        for operation in _OPERATIONS.values()
        if (id, operation) in summaries
    }
    setup = _setup(parameters, options, path, of_test, command)
    return ior_run.Test(
        id=id,
        setup=setup,
        rows=_rows(_part(test.get("Results", []), list, (*path, "Results")), (*path, "Results"), moved),
        summaries={
            operation: _statistics(summary, place) for operation, (summary, _, place) in of_test.items()
        },
        time_limit=bool(_integer(parameters, "maxTimeDuration", (*path, "Parameters"))) or command.time_limit,
        operations=frozenset(
            operation
            for key, operation in (("writeFile", Operation.WRITE), ("readFile", Operation.READ))
            if _integer(parameters, key, (*path, "Parameters"))
        ),
    )


def _setup(
    parameters: dict[str, Any],
    options: dict[str, Any],
    path: _Path,
    summaries: dict[Operation, tuple[dict[str, Any], Place, _Path]],
    command: ior.CommandLine,
) -> Setup:
    of_parameters, of_options = (*path, "Parameters"), (*path, "Options")
    setup = Setup()

    def both(in_parameters: str | None, in_options: str | None, in_summary: str | None = None) -> int | None:
        known = _integer(parameters, in_parameters, of_parameters) if in_parameters else None
        if in_options:
            known = _agreed(known, _integer(options, in_options, of_options), (*of_options, in_options))
        if in_summary:
            for summary, _, place in summaries.values():
                known = _agreed(known, _integer(summary, in_summary, place), (*place, in_summary))
        return known

    setup.ranks = both(None, "tasks", "numTasks")
    setup.nodes = both("nodes", "nodes") or None
    setup.first_node_ranks = both("tasksPerNode", "clients per node", "tasksPerNode")
    setup.repetitions = both("repetitions", "repetitions", "repetitions")
    setup.segments = both("segmentCount", "segments", "segmentCount")
    setup.block_bytes = both("blockSize", None, "blockSize")
    setup.transfer_bytes = both("transferSize", None, "transferSize")
    shared = both("filePerProc", None, "filePerProc")
    access = ior.access_is_file_per_process(str(options.get("access", "")))
    if shared is not None and access is not None and bool(shared) is not access:
        raise refusal(
            "contradictory_setup",
            "is not what filePerProc says; post one file of one run.",
            _place(*of_options, "access"),
        )
    setup.file_per_process = access if shared is None else bool(shared)
    apis: dict[str | None, _Path] = {}
    for said, place in (
        (parameters.get("api"), (*of_parameters, "api")),
        (options.get("api"), (*of_options, "api")),
        *((summary.get("API"), (*place, "API")) for summary, _, place in summaries.values()),
    ):
        if isinstance(said, str) and said.strip():
            apis.setdefault(ior.api_name(said), place)
    for name, place in apis.items():
        setup.api = name
        ior.refuse_no_io(setup, _place(*place), dry_run=False)
    if len(apis) > 1:
        raise refusal("contradictory_setup", "names another API than the rest of its test.", _place(*place))
    dry = bool(_integer(parameters, "dryRun", of_parameters)) or command.dry_run
    ior.refuse_no_io(setup, _place(*of_parameters, "dryRun"), dry_run=dry)
    synced = [_integer(parameters, key, of_parameters) for key in ("fsync", "fsyncperwrite")]
    setup.fsync = any(synced) if synced[0] is not None else command.fsync
    moved_over = [_integer(parameters, key, of_parameters) for key in ("reorderTasks", "reorderTasksRandom")]
    between = options.get("ordering inter file")
    shown = between.startswith(("constant", "random")) if isinstance(between, str) else None
    setup.reordered = any(moved_over) if moved_over[0] is not None else shown
    if shown is not None and setup.reordered is not shown:
        raise refusal(
            "contradictory_setup",
            "is not what reorderTasks says.",
            _place(*of_options, "ordering inter file"),
        )
    deadline = parameters.get("deadlineForStonewall")
    setup.may_stonewall = command.deadline or (isinstance(deadline, int | float) and deadline > 0)
    return setup


def _rows(results: list[Any], path: _Path, moved: Sequence[int]) -> list[Row]:
    """Return the rows: a flat list, or (3.3) a list for each repetition."""
    rows: list[Row] = []
    for at, item in enumerate(results):
        if isinstance(item, list):
            rows += [
                row
                for place, each in enumerate(item)
                if (row := _row(each, (*path, at, place), at, moved)) is not None
            ]
        elif (row := _row(item, (*path, at), None, moved)) is not None:
            rows.append(row)
    return rows


def _row(item: object, path: _Path, repetition: int | None, moved: Sequence[int]) -> Row | None:
    result = _part(item, dict, path)
    if not isinstance(result.get("access"), str):
        raise refusal(
            "bad_structure", "does not say its access; post the file as IOR wrote it.", _place(*path)
        )
    operation = _OPERATIONS.get(result["access"])
    if operation is None:
        return None
    values = [_number(result[key], (*path, key)) if key in result else None for key in _FIGURES]
    if values[0] is None:
        raise refusal("bad_structure", "has no bwMiB; post the file as IOR wrote it.", _place(*path))
    made = ior.row(
        place=_place(*path), operation=operation, values=values, halves=_HALVES, repetition=repetition
    )
    return _with_stated_bytes(made, moved)


def _with_stated_bytes(row: Row, stated: Sequence[int]) -> Row:
    """Return the row with the byte count that dropped lines state for it, if one of them (rising) fits."""
    if row.total is None or not stated:
        return row
    measured = row.mib * MIB * row.total
    at = bisect.bisect(stated, measured)
    closest = min(stated[max(0, at - 1) : at + 1], key=lambda count: abs(count - measured))
    return row._replace(moved_bytes=closest) if abs(closest - measured) <= 1e-3 * measured else row
