"""IO500's `result_summary.txt`, or what the benchmark prints, which holds the same lines.

Each phase is one line: `[RESULT] ior-easy-write 0.155614 GiB/s : time 0.822 seconds [INVALID]`. Read are the
phases of IOR and mdtest that are scored; a rate of zero is a phase that was not run. The last line is the
score, the geometric means of those rates, by which they are checked.

The file says nothing of ranks, nodes or flags. A phase's time includes setting up and waiting, so it is no time
of a save.
"""

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from service.errors import UnreadableDocument
from service.parsers.document import Document
from service.parsers.ior import Place, merged, refusal
from service.parsers.ior_prefix import line_prefix, unprefixed
from service.parsers.measurement import (
    MOST_MEASUREMENTS,
    Doubt,
    DoubtCode,
    Measurement,
    Operation,
    Record,
    Repetition,
    add,
    check_amount,
    repetition_doubts,
    spread,
)
from service.units import GB, GIB

NAME = "io500-summary"


_VERSION = re.compile(r"IO500 version (\S{1,60})(?: \(\w{1,20}\))?$")
_RESULT = re.compile(r"\[(?:RESULT|RESULT-invalid| {6})\] ")
_PHASE = re.compile(
    r"\[(RESULT|RESULT-invalid| {6})\] {1,60}([\w-]{1,40}) {1,40}(\S{1,40}) (GiB/s|kIOPS) {1,2}"
    r": time (\S{1,40}) seconds( \[INVALID\])?$"
)
_SCORE = re.compile(
    r"\[SCORE( ?|-invalid)\] Bandwidth (\S{1,40}) Gi?B/s : IOPS (\S{1,40}) kiops : TOTAL (\S{1,40})( \[INVALID\])?$"
)
_RECOGNISED = re.compile(
    r"IO500 version \S|\[RESULT(?:-invalid)?\] {1,60}[\w-]{1,40} {1,40}\S{1,40} (?:GiB/s|kIOPS) {1,2}: time"
)
_NUMBER = re.compile(r"[0-9]{1,12}\.[0-9]{1,9}")
_DECIMALS = 6
"""Rates and scores are printed with that many."""
_HALF_DIGIT = 5e-7
_MOST = 1e9

_PHASES: Mapping[str, tuple[int, Operation]] = {
    "ior-easy-write": (0, Operation.WRITE),
    "ior-easy-read": (0, Operation.READ),
    "ior-hard-write": (1, Operation.WRITE),
    "ior-hard-read": (1, Operation.READ),
    "mdtest-easy-write": (2, Operation.FILE_CREATE),
    "mdtest-easy-stat": (2, Operation.FILE_STAT),
    "mdtest-easy-delete": (2, Operation.FILE_REMOVE),
    "mdtest-hard-write": (3, Operation.FILE_CREATE),
    "mdtest-hard-stat": (3, Operation.FILE_STAT),
    "mdtest-hard-read": (3, Operation.FILE_READ),
    "mdtest-hard-delete": (3, Operation.FILE_REMOVE),
}
"""The phases that are read: which of the four tests each belongs to, and what it timed."""
_SCORED = frozenset((*_PHASES, "find"))


@dataclass(frozen=True, slots=True)
class _Phase:
    line: int
    name: str
    rate: float
    unit: str
    invalid: bool


@dataclass(frozen=True, slots=True)
class _Score:
    line: int
    bandwidth: float
    iops: float
    total: float
    invalid: bool


@dataclass(slots=True)
class _Run:
    line: int
    version: str | None = None
    phases: dict[str, _Phase] = field(default_factory=dict)
    score: _Score | None = None
    cut_line: int | None = None


def recognises(document: Document) -> bool:
    """Tell whether a line is IO500's first, or the result of a phase."""
    text = document.text
    if "IO500 version " not in text and "[RESULT" not in text:
        return False
    return _RECOGNISED.search(text) is not None


def _at(number: int) -> Place:
    return Place(line=number)


def _number(token: str, what: str, number: int) -> float:
    if not _NUMBER.fullmatch(token) or float(token) > _MOST:
        raise refusal(
            "bad_number",
            f"has {token[:30]!r} for {what}, which is no plain decimal number within reason; post the file as "
            "IO500 wrote it.",
            _at(number),
        )
    return float(token)


class _Walk:
    """The state of reading a file from top to bottom."""

    def __init__(self, last: int) -> None:
        self.last = last
        self.runs: list[_Run] = []
        self.prefix: re.Pattern[str] | None = None

    def take(self, received: str, number: int) -> None:
        """Take in the next line."""
        for mark in ("IO500 version ", "[RESULT"):
            at = received.find(mark)
            if at >= 0 and (mark != "[RESULT" or not self.runs):
                self.prefix = line_prefix(received[:at])
                break
        line = unprefixed(received, self.prefix).strip()
        version = _VERSION.match(line)
        if version:
            self.runs.append(_Run(number, version[1]))
            check_amount(len(self.runs), "runs", MOST_MEASUREMENTS)
        elif _RESULT.match(line):
            self.take_phase(line, number)
        elif line.startswith(("[SCORE ]", "[SCORE]", "[SCORE-invalid]")):
            self.take_score(line, number)

    def take_phase(self, line: str, number: int) -> None:
        if not self.runs:
            self.runs.append(_Run(number))
        run = self.runs[-1]
        found = _PHASE.match(line)
        if found is None:
            if number == self.last:
                run.cut_line = number
                return
            raise refusal(
                "bad_row", "is no whole result of a phase; post the file as IO500 wrote it.", _at(number)
            )
        name = found[2].replace("_", "-")
        rate, _ = _number(found[3], "a rate", number), _number(found[5], "a time", number)
        if name in run.phases:
            raise refusal(
                "duplicate_row",
                "is a second result of one phase; post one whole file of one run.",
                _at(number),
            )
        if run.score is not None:
            raise refusal(
                "bad_row",
                "is the result of a phase that follows the score; post one whole file.",
                _at(number),
            )
        if (found[4] == "GiB/s") is not name.startswith("ior-") and name in _SCORED:
            raise refusal("bad_row", f"gives {name} in {found[4]}; post the original file.", _at(number))
        invalid = found[6] is not None or found[1] == "RESULT-invalid"
        run.phases[name] = _Phase(number, name, rate, found[4], invalid)

    def take_score(self, line: str, number: int) -> None:
        if not self.runs or self.runs[-1].score is not None:
            raise refusal(
                "bad_row", "is a score without the phases that it is of; post the whole file.", _at(number)
            )
        run = self.runs[-1]
        found = _SCORE.match(line)
        if number == self.last and (found is None or len(found[4].partition(".")[2]) < _DECIMALS):
            run.cut_line = number
            return
        if found is None:
            raise refusal("bad_row", "is no whole score; post the file as IO500 wrote it.", _at(number))
        bandwidth, iops, total = (_number(found[at], "a score", number) for at in (2, 3, 4))
        invalid = found[1] == "-invalid" or found[5] is not None
        run.score = _Score(number, bandwidth, iops, total, invalid)
        _check_score(run.score, run.phases.values())


def _check_score(score: _Score, phases: Collection[_Phase]) -> None:
    """Raise `inconsistent_summary` where the scores are not the geometric means of the rates above them.

    Raises:
        UnreadableDocument: With the line of the score.
    """
    scores: list[float] = []
    for unit, shown in (("GiB/s", score.bandwidth), ("kIOPS", score.iops)):
        rates = [each.rate for each in phases if each.name in _SCORED and each.unit == unit and each.rate > 0]
        if not rates or shown == 0:
            continue  # a phase that failed may have made it zero
        mean = math.exp(sum(map(math.log, rates)) / len(rates))
        slack = sum(_HALF_DIGIT / rate for rate in rates) / len(rates) + _HALF_DIGIT / shown + 1e-9
        if not math.isclose(shown, mean, rel_tol=slack):
            raise _score_contradicts(score, f"{shown:g} {unit} where the phases above it give {mean:.7g}")
        scores.append(shown)
    if len(scores) == 2:
        total = math.sqrt(scores[0] * scores[1])
        slack = (
            sum(_HALF_DIGIT / each for each in scores) + _HALF_DIGIT / max(score.total, _HALF_DIGIT) + 1e-9
        )
        if not math.isclose(score.total, total, rel_tol=slack):
            raise _score_contradicts(
                score, f"a total of {score.total:g} where its two parts give {total:.7g}"
            )


def _score_contradicts(score: _Score, how: str) -> UnreadableDocument:
    return refusal(
        "inconsistent_summary",
        f"gives a score of {how}; a line is missing or was changed, so post the original file.",
        _at(score.line),
    )


def _own_doubts(phase: _Phase, operation: Operation) -> list[Doubt]:
    """Return the doubts about one phase."""
    doubts: list[Doubt] = []
    if phase.invalid:
        doubts.append(
            Doubt(
                code=DoubtCode.IO500_INVALID,
                message=f"IO500 marks {phase.name} as invalid (line {phase.line}), most often because it was "
                "shorter than its stonewall time; run it for 300 s.",
            )
        )
    if operation is Operation.WRITE or phase.name == "mdtest-hard-write":
        doubts.append(
            Doubt(
                code=DoubtCode.FSYNC_UNKNOWN,
                message="The summary does not say whether the writes were made durable; post the phase's own "
                "output from the results directory, which shows the flags.",
            )
        )
    if operation in (Operation.READ, Operation.FILE_READ):
        doubts.append(
            Doubt(
                code=DoubtCode.CACHED_READ,
                message="The summary does not show that each node read what another had written, so the read "
                "may come from memory; post the phase's own output from the results directory.",
            )
        )
    doubts.append(
        Doubt(
            code=DoubtCode.UNKNOWN_TOPOLOGY,
            message="The summary does not say on how many nodes it ran; give ?nodes= when posting it, or post "
            "the phases' own outputs.",
        )
    )
    return doubts


def _run_doubts(run: _Run) -> list[Doubt]:
    """Return the doubts about all phases of a run."""
    if run.score is None:
        return [
            Doubt(
                code=DoubtCode.INCOMPLETE_RUN,
                message=f"Line {run.cut_line} is cut off; post the whole file."
                if run.cut_line is not None
                else "The score is missing, with which IO500 ends; let it run to its end and post the whole file.",
            )
        ]
    if run.score.invalid and not any(phase.invalid for phase in run.phases.values()):
        return [
            Doubt(
                code=DoubtCode.IO500_INVALID,
                message=f"IO500 marks its score as invalid (line {run.score.line}), though none of its phases; "
                "its result.txt says why.",
            )
        ]
    return []


def _measurement(at: int, phase: _Phase) -> Measurement:
    test, operation = _PHASES[phase.name]
    if phase.unit == "GiB/s":
        gb_per_second, per_second = phase.rate * GIB / GB, None
    else:
        gb_per_second, per_second = None, phase.rate * 1000
    return Measurement(
        run=at,
        test=test,
        name=phase.name,
        operation=operation,
        repetitions=[Repetition(gb_per_second=gb_per_second, per_second=per_second)],
        gb_per_second=None if gb_per_second is None else spread([gb_per_second]),
        per_second=None if per_second is None else spread([per_second]),
    )


def parse(document: Document) -> Record:
    """Return what an IO500 summary holds.

    Raises:
        UnreadableDocument: `bad_row`, `bad_number`, `duplicate_row`, `inconsistent_summary`, `no_results`, with
            the line.
    """
    walk = _Walk(last=document.last_number)
    for number, line in document.numbered():
        walk.take(line, number)
    made: list[Measurement] = []
    doubts: list[Doubt] = []
    unsynced: list[Doubt] = []
    for at, run in enumerate(walk.runs):
        first = len(made)
        for phase in run.phases.values():
            if phase.name not in _PHASES or phase.rate == 0:
                continue
            new = _measurement(at, phase)
            for each in _own_doubts(phase, new.operation):
                # Of a create rate a missing sync counts only where it names the measurement.
                kind = unsynced if each.code is DoubtCode.FSYNC_UNKNOWN else doubts
                kind.append(each.about(len(made)))
            add(made, new)
        about: Sequence[int | None] = range(first, len(made)) if len(made) > first else [None]
        doubts += [each.about(place) for each in _run_doubts(run) for place in about]
    if not made:
        raise UnreadableDocument(
            "no_results",
            "No phase of IOR or mdtest has a result in this IO500 output; post result_summary.txt of a finished "
            "run.",
            line=walk.runs[-1].line if walk.runs else 1,
        )
    if len(walk.runs) > 1:
        doubts.append(
            Doubt(
                code=DoubtCode.SEVERAL_RUNS,
                message=f"The file holds {len(walk.runs)} IO500 runs, all of which were read; check that they "
                "measured the same storage, or post them one by one.",
            )
        )
    doubts += repetition_doubts(made)
    return Record(
        tool="io500",
        tool_version=walk.runs[0].version,
        format=NAME,
        measurements=made,
        doubts=[*unsynced, *merged(doubts, len(made))],
    )
