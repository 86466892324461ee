"""What the benchmarks' tests say about themselves: memory, skew, load."""

from typing import Any

import pytest

from service.sizing.sizing import TargetId
from tests.planning.examples import SMALL, changed, one_test, planned, reach
from tests.sizing.scenarios import ARTICLE


def _with_memory(body: dict[str, Any], memory: int) -> dict[str, Any]:
    return changed(body, cluster={**body["cluster"], "host_memory_bytes_per_node": memory})


def test_a_read_of_unknown_memory_is_trusted_by_its_order_and_says_so() -> None:
    read = one_test(planned(SMALL), "ior_read")
    trust = read.read_trust
    assert trust is not None
    assert (trust.trusted, trust.node_memory_bytes, trust.needed_bytes_per_node) == (True, None, None)
    assert trust.bytes_per_node == 2 * 3_670_016
    assert "host_memory_bytes_per_node" in trust.sentence
    assert (read.reordered, read.fsync, read.bytes_written) == (True, None, 0)


def test_a_read_that_outgrows_the_memory_by_itself_needs_no_more() -> None:
    read = one_test(planned(_with_memory(SMALL, 2 * 3_670_016 // 3)), "ior_read")
    assert read.read_trust is not None
    assert (read.read_trust.trusted, read.segments, len(read.commands)) == (True, 1, 1)


def test_a_read_grows_over_three_times_the_memory_where_that_is_soon_done() -> None:
    read = one_test(planned(_with_memory(SMALL, 20_000_000)), "ior_read")
    trust = read.read_trust
    assert trust is not None
    # 60 MB a node in blocks of 3,670,016 bytes of two ranks: nine of them.
    assert (trust.needed_bytes_per_node, read.segments) == (60_000_000, 9)
    assert trust.bytes_per_node == 9 * 2 * 3_670_016
    assert trust.trusted
    prepare, back = read.commands
    assert ("-w" in prepare.argv, "-r" in back.argv, "-m" in back.argv) == (True, True, False)
    assert read.bytes_written == 9 * 4 * 3_670_016
    assert read.peak_bytes == (9 + 3) * 4 * 3_670_016


def test_a_read_that_would_take_hours_shows_a_miss_at_most_and_says_what_would_prove_it() -> None:
    plan = planned(changed(ARTICLE, cluster={"gpus": 16384, "gpu_preset": "h100-sxm"}))
    read = one_test(plan, "ior_read")
    trust = read.read_trust
    assert trust is not None
    assert (trust.trusted, trust.node_memory_bytes, trust.needed_bytes_per_node) == (
        False,
        2 * 10**12,
        6 * 10**12,
    )
    assert {proof.best for proof in read.proofs} == {"nothing"}
    assert "cold page cache" in trust.sentence
    # The load of the checkpointer proves it in its place.
    assert plan.unproven == []


@pytest.mark.parametrize(("usable_tb", "grows"), [(1e-3, True), (1e-4, False)])
def test_a_read_grows_no_larger_than_the_storage(usable_tb: float, grows: bool) -> None:
    body = changed(_with_memory(SMALL, 20_000_000), storage={"usable_tb": usable_tb})
    trust = one_test(planned(body), "ior_read").read_trust
    assert trust is not None
    assert trust.trusted is grows


def test_on_one_node_a_read_shows_a_miss_at_most() -> None:
    plan = planned(_with_memory(changed(SMALL, cluster={"gpus": 2, "gpus_per_node": 2}), 1000))
    read = one_test(plan, "ior_read")
    assert read.read_trust is not None
    assert read.read_trust.trusted is False
    assert "On one node" in read.read_trust.sentence
    assert {proof.best for proof in read.proofs} == {"nothing"}


def test_a_slightly_skewed_save_is_written_as_if_every_shard_were_the_largest_and_says_so() -> None:
    even = one_test(planned(ARTICLE), "ior_write")
    plan = planned(changed(ARTICLE, shards={"skew": 1.4}))
    skewed = one_test(plan, "ior_write")
    assert even.notes == []
    assert "1.4 times the mean one" in skewed.notes[0]
    assert skewed.expected_seconds == pytest.approx(1.4 * even.expected_seconds, rel=0.01)
    assert "ior_write_largest_shards" not in {test.id for test in plan.tests}


def test_a_very_skewed_save_is_written_twice_once_by_all_and_once_by_those_with_most() -> None:
    plan = planned(changed(ARTICLE, shards={"skew": 4}))
    every, largest = one_test(plan, "ior_write"), one_test(plan, "ior_write_largest_shards")
    assert (every.ranks, largest.ranks, largest.nodes) == (16384, 4096, 512)
    assert largest.block_bytes == pytest.approx(4 * (every.block_bytes or 0), rel=0.01)
    for test in (every, largest):
        assert test.bytes_written == pytest.approx(3 * 5.67e12, rel=0.01)
        assert "4 times" in test.notes[0]
    assert "ior_write_largest_shards shows" in every.notes[0]
    assert set(reach(every)) == {TargetId.WRITE_BANDWIDTH, TargetId.NODE_WRITE_BANDWIDTH}
    assert set(reach(largest)) == {TargetId.SLOWEST_WRITER_SECONDS}


def test_writers_that_do_not_divide_by_nodes_are_rounded_up_and_it_says_so() -> None:
    body = changed(ARTICLE, cluster={"gpus": 24, "gpus_per_node": 8}, shards={"writers": 10})
    write = one_test(planned(body), "ior_write")
    assert (write.nodes, write.ranks_per_node, write.ranks) == (3, 4, 12)
    assert "10 writers" in write.notes[0]


def test_the_write_under_load_is_for_async_saves_alone_and_is_tagged() -> None:
    under_load = one_test(planned(SMALL), "ior_write_under_read_load")
    assert [str(condition) for condition in under_load.conditions] == ["under_read_load"]
    prepare, load, write = under_load.commands
    # The load reads as much as a checkpoint holds, one reader on each node.
    assert load.argv[load.argv.index("-n") + 1] == prepare.argv[prepare.argv.index("-n") + 1] == "2"
    assert load.argv[load.argv.index("-s") + 1] == "2"
    assert write.argv[write.argv.index("-n") + 1] == "4"
    assert "ior_write_under_read_load" not in {test.id for test in planned(ARTICLE).tests}


def test_mdtest_makes_as_many_files_for_each_rank_as_the_scenario() -> None:
    create = one_test(planned(SMALL), "mdtest_create")
    assert create.files_per_rank == 3
    assert create.commands[0].argv[create.commands[0].argv.index("-n", 5) + 1] == "3"
