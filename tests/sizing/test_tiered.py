"""A scenario's tiers: what each survives, holds and moves, what the set gains, and what is warned of or refused."""

from typing import Any

import pytest
from hypothesis import given, settings

from service.errors import Unsatisfiable
from service.sizing import recovery, tiers
from service.sizing.size import size
from service.sizing.sizing import Sizing, Tier, Tiers, WarningCode
from service.sizing.spec import FailureKind, ScenarioSpec, TierKind
from service.sizing.tiered import survival
from tests.sizing.scenarios import Body, article, bodies, sized
from tests.sizing.test_spec_tiers import HOST, NVME, PEER

ASYNC = {"mode": "async", "blocking_seconds": 5}
MIX = [
    {"kind": "process", "fraction": 0.25},
    {"kind": "node_reboot", "nodes": 2048, "fraction": 0.125},
    {"kind": "node_loss", "fraction": 0.5},
    {"kind": "node_loss", "nodes": 2, "fraction": 0.125},
]


def _tiers(sizing: Sizing) -> Tiers:
    assert sizing.tiers is not None
    return sizing.tiers


def _tier(kind: TierKind, sizing: Sizing) -> Tier:
    (tier,) = (tier for tier in _tiers(sizing).each if tier.kind is kind)
    return tier


def _codes(sizing: Sizing) -> set[tuple[WarningCode, str]]:
    return {(warning.code, warning.pointer) for warning in sizing.warnings}


def test_each_failure_falls_back_to_the_nearest_tier_that_survives_it() -> None:
    sizing = sized(save=ASYNC, tiers=[HOST, PEER, NVME], failure_mix=MIX)
    both = recovery.survival_fraction(nodes=2048, replicas=2, lost_nodes=2)
    wanted = {
        TierKind.HOST_MEMORY: 0.25,  # the processes alone
        TierKind.PEER_MEMORY: 0.5 + 0.125 * both,  # one node, and two that are no pair
        TierKind.NODE_LOCAL_NVME: 0.125,  # all nodes at once, which keep their drives
        TierKind.SHARED_STORAGE: 0.125 * (1 - both),
    }
    found = {tier.kind: tier.fallback_fraction for tier in _tiers(sizing).each}
    assert found == pytest.approx(wanted, rel=1e-12)
    peers = _tier(TierKind.PEER_MEMORY, sizing)
    assert [outcome.survival_fraction for outcome in peers.survives] == [1.0, 0.0, 1.0, both]


@pytest.mark.parametrize(
    ("tier", "failure", "replicas", "lost_nodes", "wanted"),
    [
        (TierKind.HOST_MEMORY, FailureKind.PROCESS, 1, 0, 1.0),
        (TierKind.HOST_MEMORY, FailureKind.NODE_REBOOT, 1, 1, 0.0),
        (TierKind.PEER_MEMORY, FailureKind.NODE_REBOOT, 2, 2, 14 / 15),
        (TierKind.PEER_MEMORY, FailureKind.NODE_LOSS, 2, 3, 0.8),
        (TierKind.NODE_LOCAL_NVME, FailureKind.NODE_REBOOT, 1, 16, 1.0),
        (TierKind.NODE_LOCAL_NVME, FailureKind.NODE_LOSS, 1, 1, 0.0),
        (TierKind.NODE_LOCAL_NVME, FailureKind.NODE_LOSS, 2, 1, 1.0),
        (TierKind.SHARED_STORAGE, FailureKind.NODE_LOSS, 1, 16, 1.0),
    ],
)
def test_what_a_tier_survives_is_a_matter_of_what_it_lies_on(
    tier: TierKind, failure: FailureKind, replicas: int, lost_nodes: int, wanted: float
) -> None:
    found = survival(tier, failure, nodes=16, replicas=replicas, lost_nodes=lost_nodes)
    assert found == pytest.approx(wanted)


def test_a_tier_that_never_helps_and_never_stalls_leaves_the_goodput_of_shared_storage() -> None:
    useless = {**HOST, "blocking_seconds": 0}
    lost = [{"kind": "node_loss", "fraction": 1}]
    for save in (ASYNC, {"mode": "sync", "blocking_seconds": 60}, ASYNC | {"durable_lag_seconds": 900}):
        sizing = sized(save=save, tiers=[useless], failure_mix=lost)
        found, alone = _tiers(sizing).goodput.model_dump(), sizing.goodput.exact.model_dump()
        assert found == pytest.approx(alone, rel=1e-12)
        assert _tiers(sizing).gained_goodput_fraction == pytest.approx(0.0, abs=1e-14)


@settings(derandomize=True, deadline=None, max_examples=150)
@given(body=bodies())
def test_it_is_the_goodput_of_shared_storage_for_any_spec(body: Body) -> None:
    useless = {"kind": "host_memory", "interval_seconds": 1e-3, "blocking_seconds": 0, "restore_seconds": 0}
    body |= {"tiers": [useless], "failure_mix": [{"kind": "node_loss", "fraction": 1}]}
    try:
        sizing = size(ScenarioSpec.model_validate(body))
    except Unsatisfiable:
        return
    assert _tiers(sizing).goodput.model_dump() == pytest.approx(
        sizing.goodput.exact.model_dump(), rel=1e-9, abs=1e-14
    )


def test_the_restart_from_a_tier_has_the_load_of_that_tier_in_it() -> None:
    sizing = sized(tiers=[HOST, PEER, NVME])
    restarts = {tier.kind: (tier.restore_seconds, tier.restart_seconds) for tier in _tiers(sizing).each}
    nvme = sizing.checkpoint.bytes_per_node / 10e9
    assert restarts == {
        TierKind.HOST_MEMORY: (5, 485),
        TierKind.PEER_MEMORY: (10, 490),
        TierKind.NODE_LOCAL_NVME: pytest.approx((nvme, 480 + nvme)),
        TierKind.SHARED_STORAGE: (120, 600),
    }


def test_a_restart_whose_load_is_not_known_is_kept_whole_and_warned_of() -> None:
    sizing = sized(tiers=[HOST], restore=None)
    assert [tier.restart_seconds for tier in _tiers(sizing).each] == [600, 600]
    assert (WarningCode.LOAD_NOT_SEPARATE, "#/restart/seconds") in _codes(sizing)


def test_the_set_gains_what_the_difference_of_goodput_costs() -> None:
    sizing = sized(save=ASYNC, tiers=[HOST, PEER])
    block = _tiers(sizing)
    assert sizing.cost is not None
    assert sizing.cost.waste_usd_per_year is not None
    assert block.waste_usd_per_year is not None
    gained = block.goodput.goodput_fraction - sizing.goodput.exact.goodput_fraction
    assert block.gained_goodput_fraction == pytest.approx(gained)
    assert gained > 0.02
    assert block.gained_usd_per_year == pytest.approx(
        sizing.cost.waste_usd_per_year - block.waste_usd_per_year
    )


def test_without_a_mix_that_of_llama_3_is_assumed_and_said() -> None:
    sizing = sized(tiers=[HOST])
    fractions = [share.fraction for share in _tiers(sizing).failure_mix]
    assert fractions == pytest.approx([98 / 419, 321 / 419])
    (warning,) = (each for each in sizing.warnings if each.code is WarningCode.FAILURE_MIX_ASSUMED)
    assert "arXiv:2407.21783" in warning.message
    stated = sized(tiers=[HOST], failure_mix=MIX)
    assert WarningCode.FAILURE_MIX_ASSUMED not in {code for code, _ in _codes(stated)}


def test_space_memory_network_and_drives_follow_from_a_nodes_share() -> None:
    drives = {"drives_per_node": 4, "drive_bytes": 1.92e12, "rated_drive_writes_per_day": 1}
    sizing = sized(save=ASYNC, tiers=[HOST, PEER, {**NVME, **drives, "replicas": 2}])
    share = 5.67e12 / 2048
    host, peer, nvme = _tiers(sizing).each[:3]
    assert host.memory_bytes_per_node == round(2 * share)
    assert peer.memory_bytes_per_node == round(4 * share)
    assert peer.peer_bytes_per_save == 5_670_000_000_000
    assert peer.node_write_gb_per_second == pytest.approx(share / 10 / 1e9)
    assert nvme.nvme_bytes_per_node == round(4 * share)
    assert nvme.nvme_fraction == pytest.approx(4 * share / 7.68e12)
    assert nvme.durable_lag_seconds == pytest.approx(2 * share / 5e9)
    assert nvme.node_written_tb_per_day == pytest.approx(288 * 2 * share / 1e12)
    assert nvme.drive_writes_per_day == pytest.approx(288 * 2 * share / 7.68e12)
    assert nvme.rated_writes_fraction == nvme.drive_writes_per_day
    staged = sizing.host_memory
    assert staged is not None
    assert _tiers(sizing).memory_bytes_per_node == round(2 * share) + round(4 * share) + staged.bytes_per_node


@pytest.mark.parametrize(
    "factor", [{"deduplication_factor": 0.1}, {"differential_fraction": 0.1, "full_every": 9}]
)
def test_a_tier_keeps_whole_copies_whatever_shared_storage_leaves_out(factor: dict[str, Any]) -> None:
    plain = sized(save=ASYNC, tiers=[HOST, PEER, NVME])
    less = sized(save=ASYNC, tiers=[HOST, PEER, NVME], model={"parameters": 405_000_000_000} | factor)
    for kind in (TierKind.HOST_MEMORY, TierKind.PEER_MEMORY, TierKind.NODE_LOCAL_NVME):
        before, now = _tier(kind, plain), _tier(kind, less)
        for name in (
            "memory_bytes_per_node",
            "nvme_bytes_per_node",
            "peer_bytes_per_save",
            "restore_seconds",
        ):
            assert getattr(now, name) == getattr(before, name)


def test_an_interval_is_fitted_into_that_of_the_next_tier() -> None:
    sizing = sized(tiers=[{**HOST, "interval_seconds": 70}, {**NVME, "interval_seconds": 290}])
    host, nvme, shared = _tiers(sizing).each
    assert (host.saves_per_shared_save, nvme.saves_per_shared_save, shared.saves_per_shared_save) == (8, 2, 1)
    assert (host.interval_seconds, nvme.interval_seconds, shared.interval_seconds) == (75, 300, 600)
    fitted = {pointer for code, pointer in _codes(sizing) if code is WarningCode.TIER_INTERVAL_FITTED}
    assert fitted == {"#/tiers/0/interval_seconds"}


def test_youngs_interval_of_a_tier_is_for_the_failures_that_it_takes() -> None:
    sizing = sized(tiers=[HOST, PEER], failure_mix=MIX)
    host, peer, shared = _tiers(sizing).each
    assert host.young_seconds == pytest.approx((2 * 1 * sizing.failures.mtbf_seconds / 0.25) ** 0.5)
    assert peer.young_seconds is None
    assert shared.young_seconds is not None
    assert shared.young_seconds > sizing.interval.young_seconds


WARNED: list[tuple[dict[str, Any], WarningCode, str]] = [
    (
        {"tiers": [PEER], "cluster": {"gpus": 16384, "host_memory_bytes_per_node": 10**10}},
        WarningCode.TIERS_EXCEED_HOST_MEMORY,
        "#/tiers",
    ),
    (
        {"tiers": [PEER], "storage": {"node_gb_per_second": 0.1}},
        WarningCode.TIER_EXCEEDS_NODE_NETWORK,
        "#/tiers/0",
    ),
    (
        {"tiers": [{**NVME, "drives_per_node": 1, "drive_bytes": 5e9}]},
        WarningCode.TIER_EXCEEDS_DRIVES,
        "#/tiers/0/drive_bytes",
    ),
    (
        {"tiers": [{**NVME, "drives_per_node": 1, "drive_bytes": 5e11, "rated_drive_writes_per_day": 1}]},
        WarningCode.DRIVE_WRITES_EXCEED_RATING,
        "#/tiers/0/rated_drive_writes_per_day",
    ),
    (
        {"tiers": [{**PEER, "durable_lag_seconds": 61}]},
        WarningCode.TIER_SLOWER_THAN_NEXT,
        "#/tiers/0/durable_lag_seconds",
    ),
    ({"tiers": [{**HOST, "restore_seconds": 121}]}, WarningCode.TIER_SLOWER_THAN_NEXT, "#/tiers/0"),
]


@pytest.mark.parametrize(("blocks", "code", "pointer"), WARNED)
def test_what_does_not_fit_is_warned_of(blocks: dict[str, Any], code: WarningCode, pointer: str) -> None:
    assert (code, pointer) in _codes(sized(**blocks))
    assert code not in {code for code, _ in _codes(sized(tiers=[HOST, PEER]))}


@pytest.mark.parametrize(
    ("blocks", "pointer", "code"),
    [
        (
            {"tiers": [{**NVME, "node_write_gb_per_second": 0.009}]},
            "#/tiers/0/node_write_gb_per_second",
            "too_small",
        ),
        (
            {"tiers": [{**HOST, "blocking_seconds": 58}]},
            "#/tiers/0/blocking_seconds",
            "no_useful_time",
        ),
    ],
)
def test_tiers_that_cannot_be_kept_up_are_refused_by_name(
    blocks: dict[str, Any], pointer: str, code: str
) -> None:
    with pytest.raises(Unsatisfiable) as caught:
        size(ScenarioSpec.model_validate(article(**blocks)))
    assert [(fault.pointer, fault.code) for fault in caught.value.faults] == [(pointer, code)]


def test_tiers_change_no_other_figure() -> None:
    with_tiers, without = sized(save=ASYNC, tiers=[HOST, PEER, NVME]), sized(save=ASYNC)
    assert with_tiers.model_copy(update={"tiers": None, "warnings": without.warnings}) == without


def test_the_goodput_is_that_of_the_levels_in_the_answer() -> None:
    sizing = sized(save=ASYNC, tiers=[HOST, PEER, NVME], failure_mix=MIX)
    levels = [
        tiers.Level(
            saves=tier.saves_per_shared_save,
            blocking_seconds=tier.blocking_seconds,
            durable_lag_seconds=tier.durable_lag_seconds,
            fallback_fraction=tier.fallback_fraction,
            restart_seconds=tier.restart_seconds,
        )
        for tier in _tiers(sizing).each
    ]
    split = tiers.tiered_split(levels, period_seconds=600, mtbf_seconds=sizing.failures.mtbf_seconds)
    assert _tiers(sizing).goodput.goodput_fraction == split.goodput
