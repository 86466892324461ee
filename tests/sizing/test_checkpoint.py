"""What one checkpoint holds, and how it is cut."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.sizing import checkpoint
from tests.sizing.scenarios import logarithmic


def test_only_the_parameters_bytes_are_reduced() -> None:
    assert (
        checkpoint.checkpoint_bytes(
            parameters=1000, bytes_per_parameter=14, reduction_factor=0.5, extra_bytes=77
        )
        == 7077
    )


@pytest.mark.parametrize(("gpus", "nodes"), [(1, 1), (7, 1), (8, 1), (9, 2), (16384, 2048), (16385, 2049)])
def test_a_node_that_is_not_full_is_a_node(gpus: int, nodes: int) -> None:
    assert checkpoint.node_count(gpus=gpus, gpus_per_node=8) == nodes


def test_dcp_writes_its_metadata_beside_the_files_of_every_rank() -> None:
    assert checkpoint.file_count(writers=16384, files_per_writer=1) == 16385
    assert checkpoint.file_count(writers=8, files_per_writer=4) == 33


@settings(derandomize=True, deadline=None, max_examples=100)
@given(
    total=logarithmic(1, 1e16),
    nodes=st.integers(1, 10_000),
    per_node=st.integers(1, 16),
    skew=logarithmic(1, 1e6),
)
def test_a_nodes_share_is_at_least_even_and_at_most_the_checkpoint(
    total: float, nodes: int, per_node: int, skew: float
) -> None:
    share = checkpoint.largest_node_share(
        checkpoint_bytes=total, nodes=nodes, writers=nodes * per_node, skew=skew
    )
    assert total / nodes <= share <= total
    shard = checkpoint.largest_shard(checkpoint_bytes=total, writers=nodes * per_node, skew=skew)
    assert share == pytest.approx(min(shard * per_node, total), rel=1e-12)


@pytest.mark.parametrize("writers", [1, 3, 2047])
def test_no_node_of_a_writer_holds_less_than_a_shard(writers: int) -> None:
    share = checkpoint.largest_node_share(checkpoint_bytes=1e12, nodes=2048, writers=writers, skew=1.0)
    assert share == checkpoint.largest_shard(checkpoint_bytes=1e12, writers=writers, skew=1.0)


def test_the_skew_gives_the_largest_shard_back() -> None:
    skew = checkpoint.skew_of_largest(largest_shard_bytes=4e9, checkpoint_bytes=5.67e12, writers=16384)
    shard = checkpoint.largest_shard(checkpoint_bytes=5.67e12, writers=16384, skew=skew)
    assert shard == pytest.approx(4e9, rel=1e-15)
    assert skew == pytest.approx(11.558, rel=1e-4)


@pytest.mark.parametrize(
    ("whole", "shard", "node", "nodes", "per_node"),
    [
        (5681.9, 7.224, 57.79, 98, 8),  # 98.3 of them make up a checkpoint
        (112.4, 17.57, 28.11, 4, 2),  # 3.2 would: three are too few
        (100.0, 100.0, 100.0, 1, 1),
        (100.0, 1.0, 8.0, 10, 8),  # no more than write
        (0.4, 0.4, 0.4, 1, 1),
    ],
)
def test_so_many_nodes_as_full_as_the_fullest_make_up_a_checkpoint(
    whole: float, shard: float, node: float, nodes: int, per_node: int
) -> None:
    unit = 1e9 if whole > 1 else 1.0
    found = checkpoint.carriers(
        checkpoint_bytes=whole * unit,
        largest_shard_bytes=shard * unit,
        largest_node_bytes=node * unit,
        writing_nodes=10 if whole == 100.0 else 2048,
    )
    assert found == (nodes, per_node)
