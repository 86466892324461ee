"""Which losses of nodes copies in groups survive: published figures, and every set of lost nodes counted."""

import math
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.sizing.recovery import survival_fraction
from tests.sizing.scenarios import logarithmic_count


@pytest.mark.parametrize(
    ("nodes", "lost_nodes", "survives"), [(16, 1, 1.0), (16, 2, 0.9333), (16, 3, 0.8), (128, 2, 0.9921)]
)
def test_two_replicas_survive_as_gemini_says(nodes: int, lost_nodes: int, survives: float) -> None:
    found = survival_fraction(nodes=nodes, replicas=2, lost_nodes=lost_nodes)
    assert found == pytest.approx(survives, abs=5e-5)


def _counted(nodes: int, replicas: int, lost_nodes: int) -> float:
    """Return the survived sets of lost nodes over all of them, by looking at each."""
    left_over = nodes % replicas
    ring = replicas + left_over if left_over else 0
    first = nodes - ring
    holders = [set(range(at, at + replicas)) for at in range(0, first, replicas)]
    holders += [{first + (at + step) % ring for step in range(replicas)} for at in range(ring)]
    lost_sets = [set(lost) for lost in combinations(range(nodes), lost_nodes)]
    return sum(not any(held <= lost for held in holders) for lost in lost_sets) / len(lost_sets)


@pytest.mark.parametrize("nodes", range(1, 12))
def test_every_set_of_lost_nodes_is_counted(nodes: int) -> None:
    for replicas in range(1, nodes + 1):
        for lost_nodes in range(nodes + 1):
            found = survival_fraction(nodes=nodes, replicas=replicas, lost_nodes=lost_nodes)
            assert found == pytest.approx(_counted(nodes, replicas, lost_nodes), abs=1e-15)


@pytest.mark.parametrize(
    ("nodes", "replicas", "lost_nodes"), [(128, 2, 3), (96, 3, 5), (2048, 4, 7), (1000, 2, 2)]
)
def test_below_twice_the_replicas_it_is_the_published_formula(
    nodes: int, replicas: int, lost_nodes: int
) -> None:
    groups = nodes // replicas
    fatal = groups * math.comb(nodes - replicas, lost_nodes - replicas)
    found = survival_fraction(nodes=nodes, replicas=replicas, lost_nodes=lost_nodes)
    assert found == pytest.approx(1 - fatal / math.comb(nodes, lost_nodes), rel=1e-15)


def test_pairs_survive_as_their_product_says() -> None:
    for nodes, lost_nodes in [(1000, 60), (10**7, 1000), (10**5, 8000)]:
        logarithm = sum(math.log1p(-at / (nodes - at)) for at in range(lost_nodes))
        found = survival_fraction(nodes=nodes, replicas=2, lost_nodes=lost_nodes)
        assert found == pytest.approx(math.exp(logarithm), rel=1e-9)


@settings(derandomize=True, deadline=None, max_examples=200)
@given(data=st.data(), nodes=logarithmic_count(1, 10_000_000), replicas=st.integers(1, 16))
def test_more_lost_nodes_are_never_survived_more_often(
    data: st.DataObject, nodes: int, replicas: int
) -> None:
    replicas = min(replicas, nodes)
    lost_nodes = data.draw(logarithmic_count(1, nodes))
    fewer = survival_fraction(nodes=nodes, replicas=replicas, lost_nodes=lost_nodes - 1)
    more = survival_fraction(nodes=nodes, replicas=replicas, lost_nodes=lost_nodes)
    assert 0.0 <= more <= fewer <= 1.0


@settings(derandomize=True, deadline=None, max_examples=200)
@given(groups=logarithmic_count(1, 10_000), data=st.data())
def test_more_replicas_in_equal_groups_never_survive_less_often(groups: int, data: st.DataObject) -> None:
    nodes = 720 * groups
    lost_nodes = data.draw(logarithmic_count(1, nodes))
    found = [
        survival_fraction(nodes=nodes, replicas=replicas, lost_nodes=lost_nodes)
        for replicas in (1, 2, 3, 4, 5, 6, 8, 9, 10, 12, 15, 16)
    ]
    assert found == sorted(found)


def test_equal_groups_beat_a_ring_of_more_copies() -> None:
    # So more replicas can survive less often where they do not divide the nodes.
    assert survival_fraction(nodes=10, replicas=5, lost_nodes=7) > survival_fraction(
        nodes=10, replicas=6, lost_nodes=7
    )
