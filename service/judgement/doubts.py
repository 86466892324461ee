"""What a doubt does to a judgement, and the doubts that need the scenario to be seen.

The doubts of the file itself come with the run, from its parser. Here are those of its load, its revision,
its memory and its contradictions; and the one definition of which doubts flatter and which void.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from service.judgement.evidence import Activity, Figure, Kind
from service.parsers.measurement import CACHE_MULTIPLE, Doubt, DoubtCode
from service.parsers.run import BenchmarkRun
from service.sizing.spec import ScenarioSpec

FLATTERS = frozenset(
    {
        DoubtCode.NO_FSYNC,
        DoubtCode.FSYNC_IGNORED,
        DoubtCode.FSYNC_UNKNOWN,
        DoubtCode.CACHED_READ,
        DoubtCode.PARTIAL_RANKS,
    }
)
"""The true figure can only be worse: it may prove that a target is missed, never that it is met."""

VOIDS = frozenset({DoubtCode.DATA_VERIFICATION_FAILED, DoubtCode.IO500_INVALID, DoubtCode.INCOMPLETE_RUN})
"""The figure proves nothing."""

_UNSYNCED = frozenset({DoubtCode.NO_FSYNC, DoubtCode.FSYNC_IGNORED, DoubtCode.FSYNC_UNKNOWN})
_TIMED = frozenset({Activity.WRITING, Activity.READING, Activity.CREATING})
_CONCERNS: Mapping[DoubtCode, frozenset[Activity]] = {
    **dict.fromkeys(_UNSYNCED, frozenset({Activity.WRITING})),
    DoubtCode.CACHED_READ: frozenset({Activity.READING}),
    DoubtCode.CACHE_UNKNOWN: frozenset({Activity.READING}),
    DoubtCode.FEW_REPETITIONS: _TIMED,
    DoubtCode.WIDE_SPREAD: _TIMED,
    DoubtCode.STRAGGLER: _TIMED,
    # A missing rank may have been slower; the size of the files does not depend on who reported it.
    DoubtCode.PARTIAL_RANKS: frozenset({Activity.WRITING, Activity.READING}),
}
"""What a doubt is about, where it is not about everything."""

MOST_NAMED = 5
"""How many runs a doubt names, the newest of them."""


Placed = Mapping[int | None, Sequence[tuple[int, Doubt]]]
"""A run's doubts by the measurement that they are about, each with its place among them."""


def placed(run: BenchmarkRun) -> Placed:
    """Return the run's doubts by measurement; None holds those about all of it.

    A file may hold thousands of measurements, each with doubts of its own: looked up, not looked through.
    """
    found: dict[int | None, list[tuple[int, Doubt]]] = {}
    for place, doubt in enumerate(run.doubts):
        found.setdefault(doubt.measurement, []).append((place, doubt))
    return found


@dataclass(frozen=True, slots=True)
class Drill:
    """How lately a restore must have been tried to count as proof.

    Attributes:
        now: The time of the report.
        days: For how many days a restore is proof.
    """

    now: datetime
    days: float

    def is_over(self, took_place_at: datetime) -> bool:
        """Whether a restore at that time is proof no longer."""
        return self.now - took_place_at > timedelta(days=self.days)


def of_figure(
    figure: Figure,
    stated: Placed,
    *,
    kind: Kind,
    spec: ScenarioSpec,
    revision: int,
    largest_shard_bytes: int,
    drill: Drill | None = None,
) -> list[Doubt]:
    """Return what there is to doubt in a figure: the file's own doubts that touch it, then the scenario's.

    Args:
        figure: The figure.
        stated: The doubts of its run, by `placed`.
        kind: How it is compared; the load of a rank matters to times alone.
        spec: The scenario, for the memory of its nodes.
        revision: The scenario's revision that is judged.
        largest_shard_bytes: Of the scenario. [B]
        drill: How lately a read must have been tried; without it none is too old.
    """
    near = [each for place in (None, *figure.places) for each in stated.get(place, ())]
    found = [doubt for _, doubt in sorted(near, key=lambda each: each[0]) if _touches(doubt, figure)]
    place = figure.places[0] if len(figure.places) == 1 else None
    cached = _cached_read(figure, place, spec)
    if cached is not None and all(doubt.code is not DoubtCode.CACHED_READ for doubt in found):
        found.append(cached)
    if kind is Kind.RANK_TIME and figure.rank_bytes is not None and figure.rank_bytes < largest_shard_bytes:
        found.append(
            Doubt(
                code=DoubtCode.BLOCK_SMALLER_THAN_SHARD,
                measurement=place,
                message=f"A rank moved {figure.rank_bytes:,.0f} bytes, and the largest shard has "
                f"{largest_shard_bytes:,}: write at least a whole shard from every rank.",
            )
        )
    if figure.run.scenario_revision < revision:
        found.append(
            Doubt(
                code=DoubtCode.OLDER_REVISION,
                message=f"The run was posted for revision {figure.run.scenario_revision} of the scenario, "
                f"which is at {revision} now: check that it still measures what is asked.",
            )
        )
    if drill is not None and figure.activity is Activity.READING and drill.is_over(figure.run.took_place_at):
        found.append(
            Doubt(
                code=DoubtCode.STALE,
                measurement=place,
                message=f"The read took place on {figure.run.took_place_at:%Y-%m-%d}, more than {drill.days:g} days "
                "ago: a checkpoint that was not restored lately is a hope. Restore one again.",
            )
        )
    return found


def runs_disagree(others: Sequence[BenchmarkRun]) -> Doubt:
    """Return the doubt that usable runs say the opposite of the one that is reported."""
    newest = sorted(others, key=lambda run: (run.took_place_at, str(run.id)), reverse=True)[:MOST_NAMED]
    more = f" and {len(others) - MOST_NAMED:,} more" if len(others) > MOST_NAMED else ""
    return Doubt(
        code=DoubtCode.RUNS_DISAGREE,
        message=f"{'Another run is' if len(others) == 1 else 'Other runs are'} on the other side of the target: "
        f"{', '.join(sorted(str(run.id) for run in newest))}{more}. Find out what differed, and measure again.",
    )


def first_of(doubts: Sequence[Doubt], codes: frozenset[DoubtCode]) -> Doubt | None:
    """Return the first doubt with one of the codes, if there is one."""
    return next((doubt for doubt in doubts if doubt.code in codes), None)


def _touches(doubt: Doubt, figure: Figure) -> bool:
    """Whether a doubt about the figure's measurements, or all of the run, is about what the figure says."""
    concerned = _CONCERNS.get(doubt.code)
    if concerned is None or figure.activity in concerned:
        return True
    # A create rate is doubted for a missing fsync only where its parser says so of this very measurement.
    return doubt.code in _UNSYNCED and figure.activity is Activity.CREATING and doubt.measurement is not None


def _cached_read(figure: Figure, place: int | None, spec: ScenarioSpec) -> Doubt | None:
    """Return the doubt that a benchmark's read fitted into the nodes' memory.

    A DCP document says by its own `page_cache` whether that was cold, and its parser doubts it by that: a
    checkpoint is smaller than the memory it came from, so this rule would doubt every load.
    """
    memory = spec.cluster.node_memory_bytes
    if figure.activity is not Activity.READING or not figure.of_benchmark or memory is None:
        return None
    if figure.moved_bytes is None or figure.nodes is None:
        return None
    node_bytes = figure.moved_bytes / figure.nodes
    if node_bytes >= CACHE_MULTIPLE * memory:
        return None
    return Doubt(
        code=DoubtCode.CACHED_READ,
        measurement=place,
        message=f"Each node read {node_bytes:,.0f} bytes and has {memory:,} bytes of memory, so the cache "
        f"may have served them: read at least {CACHE_MULTIPLE} times the memory.",
    )
