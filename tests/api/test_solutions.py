"""POST /v1/solutions: the fields of an answer, the pointers of a refusal, and the rules of the wire."""

import json
from typing import Any

import pytest
from starlette.testclient import TestClient

from service import __version__
from service.api.examples import PARALLEL_LAYOUT, QUESTIONS, TIERS
from tests.api.asking import ASYNC, SYNC, UNSATISFIABLE, Json, changed, nulls, places, problem, without

WRITE: Json = QUESTIONS["write_bandwidth"]["value"]
OUT_OF_REACH: Json = QUESTIONS["out_of_reach"]["value"]
FEASIBLE = {
    "engine_version",
    "feasible",
    "unknown",
    "unit",
    "basis",
    "goal_goodput_fraction",
    "value",
    "comparison",
    "at_limit",
    "spec",
    "sizing",
}
INFEASIBLE = {
    "engine_version",
    "feasible",
    "unknown",
    "unit",
    "basis",
    "goal_goodput_fraction",
    "reason",
    "nearest",
}


def asked(client: TestClient, question: Json, *, explain: bool = False) -> Json:
    """Return the answer to a question that can be asked."""
    answer = client.post("/v1/solutions" + ("?explain=true" if explain else ""), json=question)
    assert answer.status_code == 200, answer.text
    body: Json = answer.json()
    assert nulls(body) == []
    return body


def test_a_solution_has_the_value_and_the_sizing_that_comes_of_it(stateless: TestClient) -> None:
    solution = asked(stateless, WRITE)
    assert set(solution) == FEASIBLE
    assert solution["engine_version"] == __version__
    assert (solution["feasible"], solution["unknown"], solution["unit"], solution["basis"]) == (
        True,
        "write_gb_per_second",
        "gb_per_second",
        "specified",
    )
    assert (solution["comparison"], solution["at_limit"]) == ("at_least", False)
    assert solution["value"] == pytest.approx(391.818, abs=0.001)
    assert solution["sizing"]["goodput"]["exact"]["goodput_fraction"] >= 0.9


@pytest.mark.parametrize("name", ["write_bandwidth", "largest_cluster"])
def test_the_spec_of_a_solution_can_be_sized_and_gives_its_sizing(stateless: TestClient, name: str) -> None:
    solution = asked(stateless, QUESTIONS[name]["value"])
    assert stateless.post("/v1/sizings", json=solution["spec"]).json() == solution["sizing"]


def test_the_spec_of_a_solution_says_no_more_than_was_asked_and_found(stateless: TestClient) -> None:
    spec = asked(stateless, WRITE)["spec"]
    blocking = spec["save"].pop("blocking_seconds")
    assert blocking == pytest.approx(14.471, abs=0.001)
    assert spec == without(SYNC, "#/save/blocking_seconds")


def test_what_is_out_of_reach_says_how_near_it_comes_and_what_would_reach_it(stateless: TestClient) -> None:
    solution = asked(stateless, OUT_OF_REACH)
    assert set(solution) == INFEASIBLE
    assert solution["feasible"] is False
    nearest = solution["nearest"]
    assert nearest["goodput_fraction"] == pytest.approx(0.9222, abs=5e-5)
    assert stateless.post("/v1/sizings", json=nearest["spec"]).json() == nearest["sizing"]
    assert nearest["ways_out"][0] == {
        "unknown": "restart_seconds",
        "comparison": "at_most",
        "value": pytest.approx(269.808, abs=0.001),
        "unit": "seconds",
    }
    # The way out, gone: a better restart and the write bandwidth that is nearest.
    spec = {**nearest["spec"], "restart": {"seconds": nearest["ways_out"][0]["value"]}}
    sized = stateless.post("/v1/sizings", json=spec).json()
    assert sized["goodput"]["exact"]["goodput_fraction"] >= 0.95


@pytest.mark.parametrize("name", QUESTIONS)
def test_explain_adds_lines_for_the_figures_and_changes_none(stateless: TestClient, name: str) -> None:
    question = QUESTIONS[name]["value"]
    plain, explained = asked(stateless, question), asked(stateless, question, explain=True)
    lines = explained.pop("explanation")
    where: Any = explained.get("nearest", explained)
    assert where["sizing"].pop("explanation")
    assert explained == plain
    assert {"#/value", "#/nearest/value"} & {line["pointer"] for line in lines}
    for line in lines:
        place: Any = plain
        for part in line["pointer"].removeprefix("#/").split("/"):
            place = place[int(part)] if isinstance(place, list) else place[part]
        assert isinstance(place, int | float)


def test_the_same_question_gets_the_same_bytes(stateless: TestClient) -> None:
    first = stateless.post("/v1/solutions", json=WRITE)
    reordered = json.dumps(dict(reversed(WRITE.items())), indent=3)
    for answer in (
        stateless.post("/v1/solutions", content=reordered),
        stateless.post("/v1/solutions?explain=false", json=WRITE),
        stateless.post("/v1/solutions", json=changed(WRITE, "#/goal/restart_seconds", None)),
    ):
        assert (answer.status_code, answer.content) == (200, first.content)


@pytest.mark.parametrize(
    ("question", "pointer", "code"),
    [
        (without(WRITE, "#/spec"), "#/spec", "missing"),
        (without(WRITE, "#/unknown"), "#/unknown", "missing"),
        (without(WRITE, "#/goal"), "#/goal", "missing"),
        ({**WRITE, "unknown": "capacity"}, "#/unknown", "enum"),
        ({**WRITE, "unknown": 5}, "#/unknown", "enum"),
        ({**WRITE, "answer": 42}, "#/answer", "unknown_field"),
        ({**WRITE, "goal": {}}, "#/goal", "missing"),
        ({**WRITE, "goal": {"goodput": 0.9}}, "#/goal/goodput", "unknown_field"),
        ({**WRITE, "goal": {"goodput_fraction": 1.5}}, "#/goal/goodput_fraction", "less_than_equal"),
        ({**WRITE, "goal": {"goodput_fraction": True}}, "#/goal/goodput_fraction", "float_type"),
        ({**WRITE, "goal": {"waste_usd_per_year": -1}}, "#/goal/waste_usd_per_year", "greater_than_equal"),
        ({**WRITE, "goal": {"restart_seconds": 300}}, "#/goal/restart_seconds", "contradiction"),
        (changed(WRITE, "#/spec/save/mode", "sink"), "#/spec/save/mode", "enum"),
        (
            changed(WRITE, "#/spec/tiers", TIERS["tiers"]),
            "#/spec/tiers",
            "contradiction",
        ),
        (
            {
                "spec": changed(PARALLEL_LAYOUT, "#/prices", {"gpu_hour_usd": 2}),
                "unknown": "gpus",
                "goal": {"goodput_fraction": 0.9},
            },
            "#/spec/cluster/parallelism",
            "contradiction",
        ),
        (changed(WRITE, "#/spec/restart/seconds", 1), "#/spec/restart/seconds", "too_small"),
        (
            {**without(WRITE, "#/spec/restore"), "unknown": "read_gb_per_second"},
            "#/spec/restore",
            "missing",
        ),
    ],
)
def test_what_cannot_be_asked_is_refused_where_it_stands(
    stateless: TestClient, question: Json, pointer: str, code: str
) -> None:
    body = problem(stateless.post("/v1/solutions", json=question), 422, "invalid-request")
    assert places(body) == [(pointer, code)]


def test_several_goals_are_refused_at_each(stateless: TestClient) -> None:
    question = {**WRITE, "goal": {"goodput_fraction": 0.9, "waste_usd_per_year": 1}}
    body = problem(stateless.post("/v1/solutions", json=question), 422, "invalid-request")
    assert places(body) == [
        ("#/goal/goodput_fraction", "contradiction"),
        ("#/goal/waste_usd_per_year", "contradiction"),
    ]


@pytest.mark.parametrize(
    ("spec", "place", "code"), [case for case in UNSATISFIABLE if case[2] != "no_useful_time"]
)
def test_a_spec_without_an_answer_says_which_field_to_change(
    stateless: TestClient, spec: Json, place: str, code: str
) -> None:
    question = {"spec": spec, "unknown": "restart_seconds", "goal": {"goodput_fraction": 0.5}}
    body = problem(stateless.post("/v1/solutions", json=question), 422, "unsatisfiable")
    assert places(body) == [("#/spec" + place.removeprefix("#"), code)]


def test_a_stall_that_leaves_no_time_is_only_a_fault_where_it_is_not_what_is_asked(
    stateless: TestClient,
) -> None:
    spec = {**SYNC, "interval": {"rule": "young"}, "save": {"mode": "sync", "blocking_seconds": 1e7}}
    goal = {"goodput_fraction": 0.5}
    asked_for = {"spec": spec, "unknown": "blocking_seconds", "goal": goal}
    assert asked(stateless, asked_for)["feasible"] is True
    body = problem(
        stateless.post("/v1/solutions", json={**asked_for, "unknown": "read_gb_per_second"}),
        422,
        "unsatisfiable",
    )
    assert places(body) == [("#/spec/save/blocking_seconds", "no_useful_time")]


def test_a_budget_without_a_price_is_refused_where_the_price_belongs(stateless: TestClient) -> None:
    question = {
        "spec": without(SYNC, "#/prices"),
        "unknown": "gpus",
        "goal": {"waste_usd_per_year": 1e6},
    }
    body = problem(stateless.post("/v1/solutions", json=question), 422, "unsatisfiable")
    assert places(body) == [("#/spec/prices/gpu_hour_usd", "missing")]


@pytest.mark.parametrize("spec", [SYNC, ASYNC])
@pytest.mark.parametrize(
    "unknown",
    [
        "write_gb_per_second",
        "read_gb_per_second",
        "blocking_seconds",
        "restart_seconds",
        "interval_seconds",
        "gpus",
    ],
)
def test_every_unknown_has_an_answer(stateless: TestClient, spec: Json, unknown: str) -> None:
    for goal in ({"goodput_fraction": 0.8}, {"waste_usd_per_year": 6e7}):
        solution = asked(stateless, {"spec": spec, "unknown": unknown, "goal": goal})
        assert solution["feasible"] is True, solution
        assert ("least_value" in solution) is (unknown == "interval_seconds")


def test_a_solution_needs_no_database(stateless: TestClient) -> None:
    assert stateless.get("/v1/scenarios").status_code == 503
    assert stateless.post("/v1/solutions", json=WRITE).status_code == 200
