"""The plan as a page in Markdown, to read and to hand on.

Names from outside are escaped in prose, and stand in code that is fenced by more backticks than they hold.
"""

import re
from collections.abc import Iterator, Sequence

from service.planning import amounts
from service.planning.planned import PlannedTest, TestPlan

_SPECIAL = re.compile(r"([\\`*_{}\[\]()<>#.!|~&$:@])")


def markdown(plan: TestPlan) -> str:
    """Return the page."""
    return "\n".join(_lines(plan)) + "\n"


def escaped(text: str) -> str:
    """Return a text from outside as prose that means nothing to Markdown or HTML, on one line."""
    line = "".join(character if character.isprintable() else " " for character in text)
    return _SPECIAL.sub(r"\\\1", line)


def fenced(language: str, lines: Sequence[str]) -> Iterator[str]:
    """Yield lines as a block of code."""
    longest = max((len(run) for line in lines for run in re.findall(r"`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    yield f"{fence}{language}"
    yield from lines
    yield fence


def _lines(plan: TestPlan) -> Iterator[str]:
    label = f" of storage {escaped(plan.storage_label)}" if plan.storage_label is not None else ""
    yield f"# Test plan: {escaped(plan.name)}"
    yield ""
    yield (
        f"The tests{label} for revision {plan.scenario_revision} of the scenario, on "
        f"{amounts.of_nodes(plan.nodes, out_of=plan.scenario_nodes)}. The benchmarks take "
        f"{amounts.of_seconds(plan.expected_seconds)} where the targets are just reached, write "
        f"{amounts.of_bytes(plan.bytes_written)}, and need {amounts.of_bytes(plan.script_peak_bytes)} of space. The "
        f"checkpointer's tests write {amounts.of_bytes(plan.checkpointer_bytes_written)}, and with what is removed on "
        f"the way the whole plan needs {amounts.of_bytes(plan.peak_bytes)}. Planned by stallbudget "
        f"{plan.engine_version}."
    )
    yield ""
    yield "| test | ranks | nodes | target | to reach | best verdict |"
    yield "|---|---|---|---|---|---|"
    for test in plan.tests:
        where = f"| {test.title} | {test.ranks:,} | {test.nodes:,} |"
        for proof in test.proofs:
            bound = amounts.bound(proof.comparison, proof.value, proof.unit)
            yield f"{where} `{proof.target_id}` | {bound} | `{proof.best}` |"
        if not test.proofs:
            yield f"{where} none | for information | |"
    if plan.unproven:
        yield ""
        yield "## What this plan cannot show to be met"
        yield ""
        for each in plan.unproven:
            yield f"- `{each.target_id}`, `{each.best}` at best: {each.reason}"
    if plan.notes:
        yield ""
        yield "## Before you start"
        yield ""
        yield from (f"- {note}" for note in plan.notes)
    yield ""
    yield plan.lustre.purpose
    yield ""
    yield from fenced("sh", [plan.lustre.line])
    for test in plan.tests:
        yield ""
        yield from _test(test)


def _test(test: PlannedTest) -> Iterator[str]:
    yield f"## {test.title}"
    yield ""
    yield test.why
    yield ""
    yield from (f"- {line}" for line in _facts(test))
    for proof in test.proofs:
        yield f"- **To reach**, for `{proof.target_id}` (`{proof.best}` at best): {proof.sentence}."
    yield from (f"- {note}" for note in test.notes)
    for command in test.commands:
        yield ""
        yield command.purpose
        yield ""
        yield from fenced("sh", [command.line])
    if test.calls:
        yield ""
        yield "The calls in your training script:"
        yield ""
        yield from fenced("python", test.calls)
    if test.document_needs:
        yield ""
        yield "To count, the document must contain:"
        yield ""
        yield from (f"- {need}" for need in test.document_needs)
    yield ""
    yield test.post.purpose
    yield ""
    yield from fenced("sh", [test.post.line])


def _facts(test: PlannedTest) -> Iterator[str]:
    yield (
        f"{test.ranks:,} ranks on {amounts.of_nodes(test.nodes)}, {test.ranks_per_node:,} on "
        f"each; {test.repetitions} repetitions"
    )
    if test.block_bytes is not None and test.transfer_bytes is not None:
        segments = f", {test.segments:,} times" if (test.segments or 1) > 1 else ""
        yield (
            f"a block of {amounts.of_bytes(test.block_bytes)} for each rank{segments}, what it has to move "
            f"rounded up to transfers of {amounts.of_bytes(test.transfer_bytes)}"
        )
    yield (
        f"takes {amounts.of_seconds(test.expected_seconds)} where the targets are just reached, writes "
        f"{amounts.of_bytes(test.bytes_written)}, and has {amounts.of_bytes(test.peak_bytes)} on the storage at most"
    )
