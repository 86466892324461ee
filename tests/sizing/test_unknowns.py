"""Where each unknown stands in a spec, and how far it goes."""

import pytest
from pydantic import ValidationError

from service.sizing import unknowns
from service.sizing.solution import SolutionBasis
from service.sizing.spec import IntervalSpec, ScenarioSpec, SolutionQuestion, SolutionUnknown
from tests.sizing.scenarios import Body, article

STORAGE: Body = {"write_gb_per_second": 40.0, "read_gb_per_second": 60.0}
ASYNC: Body = {"mode": "async", "blocking_seconds": 5}


@pytest.mark.parametrize("unknown", SolutionUnknown)
def test_the_ends_of_a_range_are_what_a_spec_takes(unknown: SolutionUnknown) -> None:
    spec = SolutionQuestion.model_validate(
        {
            "spec": article(storage=STORAGE, save={"mode": "sync", "overhead_fraction": 0.01}),
            "unknown": unknown,
            "goal": {"goodput_fraction": 0.5},
        }
    ).spec.model_copy(update={"interval": IntervalSpec(), "restore": None})
    this = unknowns.Asked(spec, unknown, SolutionBasis.DELIVERED, moved_bytes=0.0)
    low, high = sorted(unknowns.range_of(this))

    def accepted(value: float) -> bool:
        try:
            dumped = unknowns.put_in(this, value).model_dump(exclude_unset=True, exclude_none=True)
            ScenarioSpec.model_validate(dumped)
        except ValidationError:
            return False
        return True

    beyond = 1 if unknown is SolutionUnknown.GPUS else high * 1e-9
    assert accepted(low)
    assert accepted(high)
    assert not accepted(high + beyond)
    assert not accepted(low - 1 if unknown is SolutionUnknown.GPUS else low * 0.999 - 1e-12)


@pytest.mark.parametrize(
    ("unknown", "blocks", "basis"),
    [
        ("gpus", {}, "specified"),
        ("gpus", {"storage": STORAGE}, "delivered"),
        ("gpus", {"storage": {"preset": "llama-3-tectonic"}}, "delivered"),
        ("gpus", {"storage": {"usable_tb": 100}}, "specified"),
        ("restart_seconds", {"storage": {"read_gb_per_second": 1}}, "delivered"),
        ("blocking_seconds", {"storage": STORAGE}, "specified"),
        ("blocking_seconds", {"storage": {"read_gb_per_second": 1}}, "delivered"),
        ("blocking_seconds", {"storage": STORAGE, "save": ASYNC}, "delivered"),
        ("write_gb_per_second", {"storage": {"usable_tb": 100}}, "delivered"),
    ],
)
def test_a_goal_is_held_against_what_a_storage_system_delivers_where_it_has_a_say(
    unknown: str, blocks: Body, basis: str
) -> None:
    spec = ScenarioSpec.model_validate(article(**blocks))
    assert unknowns.basis_of(spec, SolutionUnknown(unknown)) == basis
