"""From a run of IOR, as one of its formats tells it, to measurements and the doubts whether it is whole."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from service.parsers import ior
from service.parsers.ior import Row, Setup, Summary, refusal
from service.parsers.measurement import Doubt, DoubtCode, Measurement, Operation, Repetition, Spread, add
from service.units import MIB

_MOST_REPETITIONS = 10_000
"""More than anybody asks for of a release that shows none of them."""


@dataclass(frozen=True, slots=True)
class Test:
    """One test of a run.

    Attributes:
        id: Its number in the run.
        setup: How it was set up.
        rows: Its finished repetitions of all operations.
        summaries: IOR's statistics by operation, and whether it printed nan in them.
        ranks_seconds: The ranks' own times by operation, repetition and rank.
        incorrect_lines: Lines that tell of wrong data.
        has_unplaced_bytes: Whether IOR stated bytes really moved that belong to no row.
        time_limit: Whether it might stop before all repetitions (`-T`).
        operations: What it must have measured, as far as that is known.
    """

    id: int
    setup: Setup
    rows: Sequence[Row]
    summaries: Mapping[Operation, tuple[Summary, bool]]
    ranks_seconds: Mapping[Operation, Mapping[int, Mapping[int, float]]] = field(default_factory=dict)
    incorrect_lines: Sequence[int] = ()
    has_unplaced_bytes: bool = False
    time_limit: bool = False
    operations: frozenset[Operation] = frozenset()


@dataclass(frozen=True, slots=True)
class Run:
    """One run.

    Attributes:
        tests: Its tests.
        finished: Whether its end mark is there.
        has_end_mark: Whether one, and a summary, is to be expected.
        has_rows: Whether rows are to be expected (IOR 2.10 prints statistics alone).
        cut: What shows that the file is cut off, if anything does.
        warning_lines: Lines of warnings that mean nothing else here.
    """

    tests: Sequence[Test]
    finished: bool
    has_end_mark: bool = True
    has_rows: bool = True
    cut: str | None = None
    warning_lines: Sequence[int] = ()


@dataclass(slots=True)
class _Lacks:
    """What a run lacks, as sentences' ends."""

    missing: list[str] = field(default_factory=list)
    skipped: bool = False
    nan: bool = False


def take(at: int, run: Run, made: list[Measurement], doubts: list[Doubt]) -> None:
    """Add the measurements of a run, and its doubts.

    Args:
        at: Which run of the file.
        run: The run.
        made: The measurements of the file so far.
        doubts: The doubts of the file so far.

    Raises:
        UnreadableDocument: What the rows or summaries say cannot be true.
    """
    lacks = _Lacks([run.cut] if run.cut else [])
    first = len(made)
    for test in run.tests:
        for operation in (Operation.WRITE, Operation.READ):
            taken = _take_operation(at, run, test, operation, lacks)
            if taken is None:
                continue
            new, found = taken
            found += ior.setup_doubts(operation, test.setup) + ior.incorrect_data(test.incorrect_lines)
            doubts += [each.about(len(made)) for each in found]
            add(made, new)
        if not (test.rows or test.summaries) and not test.time_limit:
            lacks.missing.append(f"test {test.id} has no results")
    if not run.finished and run.has_end_mark:
        lacks.missing.append("the line with which IOR says that it finished is missing")
    about: Sequence[int | None] = range(first, len(made)) if len(made) > first else [None]
    for each in [*_lack_doubts(lacks), *ior.warnings(run.warning_lines)]:
        doubts += [each.about(place) for place in about]


def _take_operation(
    at: int, run: Run, test: Test, operation: Operation, lacks: _Lacks
) -> tuple[Measurement, list[Doubt]] | None:
    """Return one operation of a test, and note what it lacks."""
    setup = test.setup
    rows, gap = ior.in_order([row for row in test.rows if row.operation is operation])
    summary, nan = test.summaries.get(operation, (None, False))
    lacks.nan |= nan
    if not rows and summary is None and operation not in test.operations:
        return None
    if setup.repetitions is not None and len(rows) > setup.repetitions:
        raise refusal(
            "duplicate_row",
            f"is {operation} row {len(rows)} of a test of {setup.repetitions} repetitions; post one whole "
            "file.",
            rows[-1].place,
        )
    limited = (test.time_limit or nan) and run.finished and not gap
    if not rows:
        if summary is not None and not nan:
            if run.has_rows:
                lacks.missing.append(f"the {operation} rows of test {test.id} are missing")
            return _from_summary(at, test, operation, summary), _stonewalled(test)
        if limited:
            lacks.skipped = True
        elif test.rows or test.summaries:
            lacks.missing.append(f"test {test.id} has no {operation}")
        return None
    if setup.repetitions is None:
        lacks.missing.append(f"test {test.id} does not say how many repetitions were asked for")
    whole = not gap and len(rows) == (setup.repetitions or len(rows))
    if not whole and limited:
        lacks.skipped = True
    elif not whole:
        lacks.missing.append(
            f"{len(rows)} of {setup.repetitions} {operation} repetitions of test {test.id} are there"
        )
    if summary is None and run.finished and run.has_end_mark:
        lacks.missing.append(f"the summary of test {test.id}'s {operation} is missing")
    return ior.measurement(
        run=at,
        test=test.id,
        operation=operation,
        setup=setup,
        rows=rows,
        summary=summary if whole and not nan else None,
        ranks_seconds=test.ranks_seconds.get(operation),
    )


def _lack_doubts(lacks: _Lacks) -> list[Doubt]:
    doubts: list[Doubt] = []
    if lacks.missing:
        doubts.append(
            Doubt(
                code=DoubtCode.INCOMPLETE_RUN,
                message=f"The run is incomplete: {lacks.missing[0]}; let it run to its end and post the "
                "whole output.",
            )
        )
    if lacks.skipped:
        doubts.append(
            Doubt(
                code=DoubtCode.REPS_SKIPPED,
                message="IOR's time limit (-T) ended the run before all repetitions were made; raise it, "
                "or ask for fewer.",
            )
        )
    if lacks.nan:
        doubts.append(
            Doubt(
                code=DoubtCode.NAN_SUMMARY,
                message="IOR printed nan in its summary, as it does when repetitions were left out, so the "
                "figures rest on the rows alone; let all repetitions finish.",
            )
        )
    return doubts


def _stonewalled(test: Test) -> list[Doubt]:
    """Return the doubt that a time limit ended repetitions of which only statistics are known."""
    if not (test.setup.may_stonewall or test.has_unplaced_bytes):
        return []
    return [
        Doubt(
            code=DoubtCode.STONEWALLED,
            message="A time limit (-D) may have ended the repetitions, and this release does not say what "
            "each moved; repeat without -D, or use IOR 3.3 or later.",
        )
    ]


def _from_summary(run: int, test: Test, operation: Operation, summary: Summary) -> Measurement:
    """Return a measurement of which the file has the statistics only, as from IOR 2.10.

    The single rates are unknown, so its repetitions carry nothing but their bytes. The times follow from
    IOR's own definition, bytes over bandwidth, for the shortest and the longest.

    Raises:
        UnreadableDocument: `no_results` for a table of nan, `inconsistent_summary`.
    """
    setup = test.setup
    if summary.largest is None or summary.least is None or summary.mean is None or setup.repetitions is None:
        raise refusal(
            "no_results", "has no figures that could be used; post a finished run's.", summary.place
        )
    if not 0 < setup.repetitions <= _MOST_REPETITIONS:
        raise refusal(
            "bad_number", "is of a test with no repetitions, or too many to be true.", summary.place
        )
    largest, least, mean = summary.largest, summary.least, summary.mean
    ior.check_setup(setup, summary.place)
    for each in (largest, least, mean):
        if not 0 < each.value < 1e10:
            raise refusal("bad_number", f"has a bandwidth of {each.value:g} MiB/s.", summary.place)
    ior.check_calls(summary, setup.transfer_bytes)
    if least.value > largest.value or not least.value - 0.01 <= mean.value <= largest.value + 0.01:
        raise refusal(
            "inconsistent_summary",
            "has a mean that does not lie between its smallest and largest bandwidth; post the original.",
            summary.place,
        )
    planned = None if _stonewalled(test) else setup.planned_bytes
    if planned is not None and setup.block_bytes and planned % (setup.block_bytes * (setup.ranks or 1)):
        raise refusal(
            "contradictory_setup",
            "is of a test whose aggregate size is no multiple of its blocks and clients; post the original "
            "file.",
            summary.place,
        )
    total = None
    if planned is not None and summary.seconds_mean is not None and summary.seconds_mean.value > 0:
        shortest, longest = (planned / (each.value * MIB) for each in (largest, least))
        seconds = summary.seconds_mean
        allowed = seconds.half + 2e-3 * longest
        if not shortest - allowed <= seconds.value <= longest + allowed:
            raise refusal(
                "inconsistent_summary",
                f"has a mean time of {seconds.value:g} s where the bytes and bandwidths give {shortest:.4g} "
                f"to {longest:.4g} s; the file was changed or damaged, so post the original.",
                summary.place,
            )
        total = Spread(mean=seconds.value, min=min(shortest, seconds.value), max=max(longest, seconds.value))
    mean_mib = min(max(mean.value, least.value), largest.value)
    rates = [ior.gb_per_second(each) for each in (mean_mib, least.value, largest.value)]
    return ior.described(
        run=run,
        test=test.id,
        operation=operation,
        setup=setup,
        repetitions=[Repetition(bytes=planned)] * setup.repetitions,
        rate=Spread(
            mean=rates[0], median=rates[0] if setup.repetitions <= 2 else None, min=rates[1], max=rates[2]
        ),
        total=total,
    )
