"""A save through a staging budget, in a scenario: its stall, its interval, its lag, and who is told."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.errors import Unsatisfiable
from service.sizing import interval
from service.sizing.sizing import Sizing
from service.units import GB, GIB
from tests.sizing.scenarios import Body, logarithmic, sized

RULES = {
    "exact": interval.exact_interval,
    "young": interval.young_interval,
    "daly": interval.daly_interval,
}


def _one_node(share_gib: float, budget_gib: float, *, storage: Body | None = None, **save: object) -> Sizing:
    """Return the sizing of one node that stages so much in so much memory, with a copy of 13 s."""
    return sized(
        model={"parameters": round(share_gib * GIB), "bytes_per_parameter": 1},
        cluster={"gpus": 1, "gpus_per_node": 1},
        failures={"mtbf_hours": 10},
        save={
            "mode": "async",
            "blocking_seconds": 13,
            "durable_lag_seconds": 130,
            "staging_budget_bytes_per_node": round(budget_gib * GIB),
            **save,
        },
        interval={"rule": "fixed", "seconds": 3600},
        storage=storage,
    )


def test_a_share_that_fits_stalls_for_the_stated_time_and_nobody_is_warned() -> None:
    sizing = _one_node(9.75, 16)
    assert sizing.blocking.seconds == sizing.blocking.staging_stall_seconds == 13
    assert sizing.blocking.budget_seconds is None
    assert (sizing.write.durable_lag_seconds, sizing.write.drain_seconds) == (130, None)
    assert sizing.host_memory is not None
    assert sizing.host_memory.budget_fraction == pytest.approx(9.75 / 16, rel=1e-9)
    assert "staging_stalls" not in [warning.code for warning in sizing.warnings]


def test_a_share_that_does_not_fit_stalls_for_its_drain_and_the_budget_stays_the_target() -> None:
    sizing = _one_node(78, 8)  # 78 GiB in 130 s drain at 0.6 GiB/s
    assert sizing.blocking.seconds == pytest.approx(129.7, abs=0.05)
    assert sizing.blocking.budget_seconds == 13
    assert sizing.write.drain_seconds == 130
    assert sizing.write.durable_lag_seconds == pytest.approx(8 / 0.6, rel=1e-9)
    targets = {target.id.value: target.value for target in sizing.targets}
    assert targets["blocking_seconds"] == 13
    assert targets["slowest_writer_seconds"] == 130
    assert targets["persist_seconds"] == pytest.approx(8 / 0.6, rel=1e-9)
    (warning,) = (each for each in sizing.warnings if each.code == "staging_stalls")
    assert warning.pointer == "#/save/staging_budget_bytes_per_node"
    assert "129.667 s where 13 s are allowed" in warning.message


def test_the_longer_stall_is_in_goodput_and_cost() -> None:
    small, large = _one_node(78, 8), _one_node(78, 80)
    assert small.goodput.exact.saving_fraction > 9 * large.goodput.exact.saving_fraction
    assert small.cost is not None
    assert large.cost is not None
    assert small.cost.stall_usd_per_day == pytest.approx(
        (large.cost.stall_usd_per_day or math.nan) * small.blocking.seconds / 13, rel=1e-12
    )


def test_no_bandwidth_makes_up_for_a_copy_that_takes_all_of_the_stall_and_the_warning_says_so() -> None:
    (untold,) = _stalls(_one_node(78, 8))
    assert "No write bandwidth keeps a save within what is allowed" in untold
    assert "the copy is taken to last all 13 s, since copy_seconds is not given" in untold
    (told,) = _stalls(_one_node(78, 8, copy_seconds=20))
    assert "No write bandwidth keeps a save within what is allowed: the copy alone takes 20 s." in told
    overlapped = _one_node(78, 80, copy_seconds=20, drain_overlaps_copy=True)
    assert overlapped.blocking.seconds == 20
    (fits,) = _stalls(overlapped)
    assert "Ways out: a faster copy, a longer stall, or more nodes." in fits


def _stalls(sizing: Sizing) -> list[str]:
    """Return what the warnings of a stall say."""
    return [warning.message for warning in sizing.warnings if warning.code == "staging_stalls"]


# By hand: two nodes of 78 GiB that stage 8 GiB each; 130 s are allowed, 13 of them for the copy, so that 70 GiB have to
# drain in 117 s: 0.642411e9 B/s on a node.
TWO_NODES: Body = {
    "model": {"parameters": 11_964_551_753},
    "cluster": {"gpus": 16},
    "failures": {"mtbf_hours": 24},
    "save": {
        "mode": "async",
        "blocking_seconds": 130,
        "copy_seconds": 13,
        "staging_budget_bytes_per_node": 8 * GIB,
    },
    "interval": {"rule": "fixed", "seconds": 1800},
}


def test_the_required_bandwidth_keeps_the_stall_to_what_is_allowed() -> None:
    sizing = sized(**TWO_NODES)
    assert sizing.write.required_gb_per_second == pytest.approx(2 * 70 * GIB / 117 / GB, rel=1e-9)
    assert sizing.write.required_gb_per_second == pytest.approx(1.28482, rel=1e-5)
    assert sizing.write.per_node_gb_per_second == pytest.approx(0.642411, rel=1e-5)
    assert sizing.write.drain_seconds == pytest.approx(117 * 78 / 70, rel=1e-9)
    assert sizing.blocking.seconds == 130
    assert sizing.blocking.budget_seconds is None
    assert sizing.goodput.exact.goodput_fraction > 0.9
    assert not _stalls(sizing)
    targets = {target.id.value: target.value for target in sizing.targets}
    assert targets["write_bandwidth"] == sizing.write.required_gb_per_second
    assert targets["write_bandwidth_under_read_load"] == sizing.write.required_gb_per_second
    assert targets["blocking_seconds"] == 130


def test_storage_at_the_required_bandwidth_delivers_the_allowed_stall_and_slower_storage_says_so() -> None:
    required = sized(**TWO_NODES).write.required_gb_per_second
    at_it = sized(**TWO_NODES, storage={"write_gb_per_second": required})
    assert at_it.delivered is not None
    assert at_it.delivered.blocking is not None
    assert at_it.delivered.blocking.seconds == pytest.approx(130, rel=1e-12)
    below = sized(**TWO_NODES, storage={"write_gb_per_second": required * 0.999})
    (message,) = _stalls(below)
    assert message.startswith(
        "On the given storage a save stops training for 130.117 s where 130 s are allowed"
    )
    assert "a faster drain" in message


def test_a_drain_that_overlaps_the_copy_has_all_of_the_stall() -> None:
    save = {**TWO_NODES["save"], "copy_seconds": 130, "drain_overlaps_copy": True}
    sizing = sized(**{**TWO_NODES, "save": save})
    assert sizing.write.required_gb_per_second == pytest.approx(2 * 70 * GIB / 130 / GB, rel=1e-9)
    assert (sizing.blocking.seconds, _stalls(sizing)) == (130, [])


def test_a_durable_lag_and_the_headroom_still_ask_for_what_they_do() -> None:
    def required(**save: object) -> float:
        return sized(**{**TWO_NODES, "save": {**TWO_NODES["save"], **save}}).write.required_gb_per_second

    assert required(durable_lag_seconds=100) == pytest.approx(2 * 78 * GIB / 100 / GB, rel=1e-9)
    assert required(durable_lag_seconds=1700) == required()
    assert required(headroom=20.0) == pytest.approx(2 * 78 * GIB / 90 / GB, rel=1e-9)


def test_a_layout_of_the_405b_stalls_for_what_is_allowed_once_the_copy_leaves_room() -> None:
    body: Body = {
        "model": {"preset": "llama-3-405b"},
        "cluster": {
            "gpus": 16_384,
            "gpus_per_node": 8,
            "parallelism": {"tensor": 8, "pipeline": 16},
        },
        "save": {"mode": "async", "blocking_seconds": 5, "staging_budget_bytes_per_node": 32 * 10**9},
    }
    untold = sized(**body)
    assert untold.blocking.seconds > 100
    assert "copy_seconds is not given" in _stalls(untold)[0]
    told = sized(**{**body, "save": {**body["save"], "copy_seconds": 3}})
    assert (told.blocking.seconds, _stalls(told)) == (5, [])
    assert told.host_memory is not None
    share = told.host_memory.bytes_per_node
    assert told.write.largest_node_gb_per_second == pytest.approx((share - 32e9) / 2 / GB, rel=1e-6)


def test_the_published_stall_comes_of_the_published_rate() -> None:
    # 78 GiB through 8 GiB at 0.60 GiB/s with a copy of 13 s: 129.7 s; 130.1 s were measured.
    storage = {"write_gb_per_second": 0.60 * GIB / GB}
    sizing = _one_node(78, 8, blocking_seconds=15, copy_seconds=13, durable_lag_seconds=None, storage=storage)
    assert sizing.delivered is not None
    assert sizing.delivered.blocking is not None
    assert sizing.delivered.blocking.seconds == pytest.approx(129.7, abs=0.05)
    assert sizing.delivered.blocking.budget_seconds == 15
    overlapped = _one_node(78, 8, drain_overlaps_copy=True, storage=storage)
    assert overlapped.delivered is not None
    assert overlapped.delivered.blocking is not None
    assert overlapped.delivered.write is not None
    assert overlapped.delivered.blocking.seconds == pytest.approx(70 / 0.6, rel=1e-9)
    assert overlapped.delivered.write.durable_lag_seconds == pytest.approx(8 / 0.6, rel=1e-9)


def test_a_stated_copy_may_leave_room_for_the_wait() -> None:
    roomy = _one_node(78, 76, copy_seconds=5)
    assert roomy.blocking.seconds == 13
    assert roomy.blocking.staging_stall_seconds == pytest.approx(5 + 2 / 0.6, rel=1e-9)
    assert roomy.blocking.budget_seconds is None


def test_the_given_storage_drains_at_its_own_rate() -> None:
    sizing = _one_node(78, 8, storage={"write_gb_per_second": 1.2 * GIB / GB}, durable_lag_seconds=None)
    assert sizing.delivered is not None
    assert sizing.delivered.blocking is not None
    assert sizing.delivered.write is not None
    assert sizing.delivered.blocking.seconds == pytest.approx(70 / 1.2 + 13, rel=1e-9)
    assert sizing.delivered.write.durable_lag_seconds == pytest.approx(8 / 1.2, rel=1e-9)


def test_a_storage_that_drains_too_slowly_is_infeasible_and_says_for_what_stall() -> None:
    sizing = _one_node(78, 8, storage={"write_gb_per_second": 0.01})
    assert sizing.delivered is not None
    assert not sizing.delivered.feasible
    assert sizing.delivered.blocking is not None
    assert sizing.delivered.blocking.seconds > 3600
    assert sizing.delivered.blocking.budget_seconds == 13


STALLS: list[Body] = [{"blocking_seconds": 5.0}, {"blocking_seconds": 300.0}, {"overhead_fraction": 0.02}]


def _saves(stall: Body, fits: float, copy: float | None, *, overlaps: bool, lag: float | None) -> Body:
    return {
        "mode": "async",
        **stall,
        "staging_budget_bytes_per_node": max(1, round(SHARE_BYTES * fits)),
        "drain_overlaps_copy": overlaps,
        **({"copy_seconds": copy} if copy is not None else {}),
        **({"durable_lag_seconds": lag} if lag is not None else {}),
    }


SHARE_BYTES = 5_670 * GB / 2048
MTBF_SECONDS = 1296 * 3600 / 419


def _stall(save: Body, seconds: float) -> float:
    """Return the stall that a save through staging memory has at an interval. [s]

    What is asked of the storage keeps it to what is allowed, but where the copy takes all of that.
    """
    allowed = save.get("blocking_seconds", save.get("overhead_fraction", 0.0) * seconds)
    drain = save.get("durable_lag_seconds", seconds / 2.5)
    wait = max(1 - save["staging_budget_bytes_per_node"] / SHARE_BYTES, 0) * drain
    copy = save.get("copy_seconds", allowed)
    if copy <= allowed if save["drain_overlaps_copy"] else copy < allowed:
        return float(allowed)
    return float(max(allowed, copy, wait) if save["drain_overlaps_copy"] else max(allowed, copy + wait))


@settings(derandomize=True, deadline=None, max_examples=100)
@given(
    rule=st.sampled_from(list(RULES)),
    stall=st.sampled_from(STALLS),
    fits=st.floats(0.001, 1.5),
    copy=st.none() | logarithmic(0.1, 500),
    overlaps=st.booleans(),
    lag=st.none() | logarithmic(1, 3000),
)
def test_the_stall_is_that_of_the_interval_and_the_interval_the_rules_for_it(
    rule: str, stall: Body, fits: float, copy: float | None, overlaps: bool, lag: float | None
) -> None:
    save = _saves(stall, fits, copy, overlaps=overlaps, lag=lag)
    sizing = sized(save=save, interval={"rule": rule})
    seconds = sizing.interval.seconds
    assert sizing.blocking.seconds == pytest.approx(_stall(save, seconds), rel=1e-9)
    if lag is not None or fits >= 1:  # no wait grows with the interval
        wanted = RULES[rule](blocking_seconds=sizing.blocking.seconds, mtbf_seconds=MTBF_SECONDS)
        assert seconds == pytest.approx(wanted, rel=1e-9)


@settings(derandomize=True, deadline=None, max_examples=100)
@given(
    blocking=logarithmic(1, 500),
    fits=st.floats(0.001, 0.999),
    copy=st.none() | logarithmic(0.1, 500),
    overlaps=st.booleans(),
    aside=st.floats(0.3, 3.0),
)
def test_the_exact_interval_counts_that_a_wait_grows_with_it(
    blocking: float, fits: float, copy: float | None, overlaps: bool, aside: float
) -> None:
    save = _saves({"blocking_seconds": blocking}, fits, copy, overlaps=overlaps, lag=None)

    def useful(seconds: float) -> float:
        """Return the goodput without the restart and the lag, which the rule leaves out."""
        return (seconds - _stall(save, seconds)) / math.expm1(seconds / MTBF_SECONDS)

    found = sized(save=save, interval={"rule": "exact"}).interval.seconds
    assert useful(found) >= useful(found * aside) * (1 - 1e-9)
    assert useful(found) >= useful(found * (1 + (aside - 1) / 50)) * (1 - 1e-9)


def test_a_stall_that_outgrows_every_interval_is_refused() -> None:
    with pytest.raises(Unsatisfiable) as caught:
        sized(
            save={
                "mode": "async",
                "overhead_fraction": 0.3,
                "headroom": 1.0,
                "staging_budget_bytes_per_node": 10**8,
            },
            interval={"rule": "exact"},
        )
    (fault,) = caught.value.faults
    assert (fault.pointer, fault.code) == ("#/save/staging_budget_bytes_per_node", "no_useful_time")


def test_a_stall_as_long_as_the_fixed_interval_is_refused() -> None:
    with pytest.raises(Unsatisfiable) as caught:
        sized(
            save={
                "mode": "async",
                "blocking_seconds": 5,
                "durable_lag_seconds": 700,
                "staging_budget_bytes_per_node": 1,
            }
        )
    (fault,) = caught.value.faults
    assert (fault.pointer, fault.code) == ("#/save/staging_budget_bytes_per_node", "no_useful_time")


def test_buffers_that_do_not_fit_the_budget_are_refused() -> None:
    with pytest.raises(Unsatisfiable) as caught:
        _one_node(10, 16, staging_buffers=2)
    (fault,) = caught.value.faults
    assert (fault.pointer, fault.code) == ("#/save/staging_budget_bytes_per_node", "too_small")
    assert _one_node(10, 20, staging_buffers=2).blocking.seconds == 13


@settings(derandomize=True, deadline=None, max_examples=100)
@given(
    rule=st.sampled_from([{"rule": "exact"}, {"rule": "young"}, {"rule": "fixed", "seconds": 1800}]),
    stall=st.sampled_from(STALLS),
    fits=st.floats(0.001, 1.5),
    copy=st.none() | logarithmic(0.1, 500),
    overlaps=st.booleans(),
    lag=st.none() | logarithmic(1, 1000),
)
def test_storage_at_the_required_bandwidth_keeps_to_the_stall_or_no_bandwidth_is_said_to(
    rule: Body, stall: Body, fits: float, copy: float | None, overlaps: bool, lag: float | None
) -> None:
    save = _saves(stall, fits, copy, overlaps=overlaps, lag=lag)
    try:
        asked = sized(save=save, interval=rule)
    except Unsatisfiable:
        return
    if asked.blocking.budget_seconds is not None:
        assert "No write bandwidth keeps a save within what is allowed" in _stalls(asked)[0]
        return
    storage = {"write_gb_per_second": asked.write.required_gb_per_second}
    on_it = sized(save=save, interval=rule, storage=storage)
    assert on_it.delivered is not None
    assert on_it.delivered.blocking is not None
    assert on_it.delivered.blocking.seconds == pytest.approx(asked.blocking.seconds, rel=1e-9)
    assert on_it.delivered.interval is not None
    assert on_it.delivered.interval.seconds == pytest.approx(asked.interval.seconds, rel=1e-9)
