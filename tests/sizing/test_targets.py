"""The list of what a storage system must reach."""

import pytest

from tests.sizing.scenarios import Body, sized

SYNC: Body = {"mode": "sync", "blocking_seconds": 60}
ASYNC: Body = {"mode": "async", "blocking_seconds": 5, "durable_lag_seconds": 200}

Line = tuple[str, str, float, str, str]

READS: list[Line] = [
    ("read_bandwidth", "at_least", 47.25, "gb_per_second", "cluster"),
    ("node_read_bandwidth", "at_least", 47.25 / 2048, "gb_per_second", "node"),
    ("load_seconds", "at_most", 120, "seconds", "cluster"),
    ("resharded_load_seconds", "at_most", 120, "seconds", "cluster"),
]


def _lines(save: Body, **blocks: Body | None) -> list[Line]:
    return [
        (target.id, target.comparison, target.value, target.unit, target.scope)
        for target in sized(save=save, **blocks).targets
    ]


def _approximately(lines: list[Line]) -> list[object]:
    return [(*line[:2], pytest.approx(line[2], rel=1e-14), *line[3:]) for line in lines]


def test_a_sync_scenario_has_the_targets_of_the_contract() -> None:
    assert _lines(SYNC) == _approximately(
        [
            ("write_bandwidth", "at_least", 94.5, "gb_per_second", "cluster"),
            ("node_write_bandwidth", "at_least", 94.5 / 2048, "gb_per_second", "node"),
            ("slowest_writer_seconds", "at_most", 60, "seconds", "rank"),
            ("blocking_seconds", "at_most", 60, "seconds", "rank"),
            *READS,
            ("file_create_rate", "at_least", 16385 / 60, "per_second", "cluster"),
            ("checkpoint_bytes", "within", 5.67e12, "bytes", "cluster"),
        ]
    )


def test_an_async_scenario_has_the_targets_of_the_contract() -> None:
    assert _lines(ASYNC) == _approximately(
        [
            ("write_bandwidth", "at_least", 28.35, "gb_per_second", "cluster"),
            ("node_write_bandwidth", "at_least", 28.35 / 2048, "gb_per_second", "node"),
            ("write_bandwidth_under_read_load", "at_least", 28.35, "gb_per_second", "cluster"),
            ("slowest_writer_seconds", "at_most", 200, "seconds", "rank"),
            ("blocking_seconds", "at_most", 5, "seconds", "rank"),
            ("persist_seconds", "at_most", 200, "seconds", "cluster"),
            *READS,
            ("file_create_rate", "at_least", 16385 / 200, "per_second", "cluster"),
            ("checkpoint_bytes", "within", 5.67e12, "bytes", "cluster"),
        ]
    )


@pytest.mark.parametrize("save", [SYNC, ASYNC])
def test_without_a_restore_block_nothing_is_asked_of_reads(save: Body) -> None:
    whole, writes = _lines(save), _lines(save, restore=None)
    assert [line for line in whole if line not in writes] == _approximately(READS)


def test_only_the_checkpoint_bytes_have_a_tolerance() -> None:
    tolerances = {target.id: target.tolerance_fraction for target in sized().targets}
    assert {name: value for name, value in tolerances.items() if value is not None} == {
        "checkpoint_bytes": 0.05
    }


def test_every_target_says_where_its_value_comes_from() -> None:
    assert all(target.why for save in (SYNC, ASYNC) for target in sized(save=save).targets)
