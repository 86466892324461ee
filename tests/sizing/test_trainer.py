"""The interval in steps, and the threads that fill a node."""

import pytest
from hypothesis import given, settings

from service.sizing import trainer
from tests.sizing.scenarios import logarithmic


@pytest.mark.parametrize(
    ("interval", "blocking", "step", "steps"),
    [(600, 60, 5, 108), (600, 5, 7.3, 82), (600, 5, 1000, 1), (600, 599, 5, 1), (600, 0.5, 0.5, 1199)],
)
def test_an_interval_is_the_nearest_number_of_steps_beside_its_save(
    interval: float, blocking: float, step: float, steps: int
) -> None:
    assert (
        trainer.interval_steps(interval_seconds=interval, blocking_seconds=blocking, step_seconds=step)
        == steps
    )


@settings(derandomize=True, deadline=None, max_examples=100)
@given(useful=logarithmic(1e-3, 1e9), blocking=logarithmic(1e-6, 1e7), step=logarithmic(1e-6, 1e7))
def test_the_steps_come_within_half_a_step_of_the_interval(
    useful: float, blocking: float, step: float
) -> None:
    interval = useful + blocking
    steps = trainer.interval_steps(interval_seconds=interval, blocking_seconds=blocking, step_seconds=step)
    found = trainer.interval_of_steps(interval_steps=steps, step_seconds=step, blocking_seconds=blocking)
    if steps > 1:
        assert abs(found - interval) <= step / 2 + 1e-9 * interval
    else:
        assert found == pytest.approx(step + blocking, rel=1e-15)


@pytest.mark.parametrize(
    ("node", "thread", "ranks", "threads"),
    [(50, 50, 8, 1), (50, 1.7, 8, 4), (48, 2, 8, 3), (0.3, 0.1, 1, 3), (0.001, 5, 8, 1), (50, 1.7, 1, 30)],
)
def test_threads_fill_the_node_and_not_one_more(node: float, thread: float, ranks: int, threads: int) -> None:
    found = trainer.writer_threads(node_gb_per_second=node, thread_gb_per_second=thread, writing_ranks=ranks)
    assert found == threads


def test_writers_are_counted_on_the_fullest_node() -> None:
    assert trainer.writing_ranks(writers=16384, nodes=2048) == 8
    assert trainer.writing_ranks(writers=700, nodes=256) == 3
    assert trainer.writing_ranks(writers=3, nodes=256) == 1
