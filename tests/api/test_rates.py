"""How many requests a caller may send: the quota comes back evenly, and every answer says how it stands."""

import re
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from service.api import bodies
from service.api.rates import WINDOW_SECONDS, Budget, RateLimits, Standing
from service.app import create_app
from service.settings import Settings
from service.store.caller import AccessScope
from tests.api.asking import LOCAL, SYNC, problem, store
from tests.api.keyring import make_key


class Clock:
    """A clock that moves when it is told to."""

    def __init__(self) -> None:
        self.at = 1000.0

    def __call__(self) -> float:
        return self.at


def _limits(clock: Clock, *, callers: int = 100, **quotas: int) -> RateLimits:
    settings = Settings(database_url="sqlite:///unused.db", **quotas)  # type: ignore[arg-type]
    return RateLimits(settings, monotonic=clock, callers=callers)


def _says(standing: Standing) -> dict[str, str]:
    return {name.decode(): value.decode() for name, value in standing.fields}


def test_a_quota_is_there_at_once_and_comes_back_one_by_one() -> None:
    clock = Clock()
    limits = _limits(clock, reading_per_minute=6)
    assert [limits.take(Budget.READING, "a").is_allowed for _ in range(7)] == [True] * 6 + [False]
    assert limits.take(Budget.READING, "a").retry_after_seconds == 10
    clock.at += 9.9
    assert limits.take(Budget.READING, "a").retry_after_seconds == 1
    clock.at += 0.1
    assert limits.take(Budget.READING, "a").is_allowed
    assert not limits.take(Budget.READING, "a").is_allowed
    clock.at += 60
    assert [limits.take(Budget.READING, "a").is_allowed for _ in range(7)] == [True] * 6 + [False]


def test_every_answer_says_how_its_caller_stands() -> None:
    clock = Clock()
    limits = _limits(clock, writing_per_minute=3)
    said = [_says(limits.take(Budget.WRITING, "a")) for _ in range(4)]
    assert {one["ratelimit-policy"] for one in said} == {'"writing";q=3;w=60'}
    assert [one["ratelimit"] for one in said] == [
        '"writing";r=2;t=20',
        '"writing";r=1;t=40',
        '"writing";r=0;t=60',
        '"writing";r=0;t=60',
    ]


def test_callers_and_budgets_do_not_share() -> None:
    limits = _limits(Clock(), reading_per_minute=1, writing_per_minute=1)
    assert limits.take(Budget.READING, "a").is_allowed
    assert limits.take(Budget.READING, "b").is_allowed
    assert limits.take(Budget.WRITING, "a").is_allowed
    assert not limits.take(Budget.READING, "a").is_allowed


def test_a_quota_of_0_is_none() -> None:
    limits = _limits(Clock(), computing_per_minute=0)
    assert {limits.take(Budget.COMPUTING, "a") for _ in range(100)} == {Standing(True, ())}


@given(
    quota=st.integers(1, 10**9),
    pauses=st.lists(st.floats(0, 120, allow_nan=False), min_size=1, max_size=60),
)
def test_nobody_gets_more_than_the_quota_and_what_came_back(quota: int, pauses: list[float]) -> None:
    clock = Clock()
    limits = _limits(clock, reading_per_minute=quota)
    taken, started = 0, clock.at
    for pause in pauses:
        clock.at += pause
        standing = limits.take(Budget.READING, "a")
        taken += standing.is_allowed
        assert taken <= quota * (1 + (clock.at - started) / WINDOW_SECONDS) + 1e-6 * quota
        found = re.fullmatch(r'"reading";r=(\d+);t=(\d+)', _says(standing)["ratelimit"])
        assert found is not None
        assert 0 <= int(found[1]) < quota
        assert 0 <= int(found[2]) <= WINDOW_SECONDS + 1
        assert standing.is_allowed == (standing.retry_after_seconds == 0)


@given(quota=st.integers(1, 500))
def test_who_waits_as_long_as_he_is_told_is_let_through(quota: int) -> None:
    clock = Clock()
    limits = _limits(clock, reading_per_minute=quota)
    assert all(limits.take(Budget.READING, "a").is_allowed for _ in range(quota))
    refused = limits.take(Budget.READING, "a")
    assert not refused.is_allowed
    clock.at += refused.retry_after_seconds
    assert limits.take(Budget.READING, "a").is_allowed


def test_a_flood_of_callers_takes_bounded_memory_and_is_counted() -> None:
    clock = Clock()
    limits = _limits(clock, callers=10, reading_per_minute=1)
    for caller in range(1000):
        assert limits.take(Budget.READING, caller).is_allowed
        assert len(limits._whole_at) <= 10
    assert limits.forgotten >= 900
    clock.at += 60
    before = limits.forgotten
    assert limits.take(Budget.READING, "a").is_allowed
    assert limits.forgotten == before


def _service(**settings: int) -> TestClient:
    app = create_app(Settings(database_url="sqlite:///unused.db", **settings))  # type: ignore[arg-type]
    return TestClient(app, raise_server_exceptions=False, base_url=LOCAL)


def test_one_request_too_many_is_a_429_that_says_when() -> None:
    with _service(computing_per_minute=2) as client:
        answers = [client.post("/v1/sizings", json=SYNC) for _ in range(3)]
        assert [answer.status_code for answer in answers] == [200, 200, 429]
        assert "computing" in problem(answers[2], 429, "rate-limited")["detail"]
        assert answers[2].headers["retry-after"] == "30"
        assert answers[0].headers["ratelimit-policy"] == '"computing";q=2;w=60'
        assert [answer.headers["ratelimit"].split(";")[1] for answer in answers] == ["r=1", "r=0", "r=0"]
        # Of another budget there is enough.
        assert client.get("/v1/presets/gpus").status_code == 200


def test_what_is_refused_for_other_reasons_counts_too() -> None:
    with _service(reading_per_minute=3, computing_per_minute=1) as client:
        assert client.post("/v1/sizings", content="{").status_code == 400
        problem(client.post("/v1/sizings", content="{"), 429, "rate-limited")
        problem(client.get("/nowhere"), 404, "not-found")
        assert client.put("/v1/sizings").status_code == 405
        assert client.get("/v1/presets/gpus?a=1").status_code == 422
        answer = client.get("/nowhere")
        problem(answer, 429, "rate-limited")
        assert int(answer.headers["retry-after"]) >= 1


def test_operators_are_never_refused() -> None:
    with _service(reading_per_minute=1, computing_per_minute=1, writing_per_minute=1) as client:
        for path in ("/livez", "/readyz"):
            answers = [client.get(path) for _ in range(5)]
            assert 429 not in {answer.status_code for answer in answers}
            assert "ratelimit" not in answers[0].headers


def test_writing_has_its_own_budget(client: TestClient) -> None:
    made = store(client)
    answer = client.get(f"/v1/scenarios/{made['id']}")
    assert answer.headers["ratelimit-policy"] == '"reading";q=6000;w=60'
    answer = client.delete(f"/v1/scenarios/{made['id']}", headers={"If-Match": "*"})
    assert answer.headers["ratelimit-policy"] == '"writing";q=3000;w=60'


def test_each_route_takes_from_the_budget_of_its_work() -> None:
    app = create_app(Settings(database_url="sqlite:///unused.db"))
    budgets = {
        route.operation_id: route.budget for route in app.routes if isinstance(route, bodies.StrictRoute)
    }
    assert {name for name, budget in budgets.items() if budget is None} == {
        "get_liveness",
        "get_readiness",
        "get_metrics",
    }
    assert {name for name, budget in budgets.items() if budget is Budget.COMPUTING} == {
        "create_sizing",
        "get_scenario_sizing",
        "get_test_plan",
        "get_gap_report",
        "get_gap_report_comparison",
        "get_series",
        "get_storage_series",
        "create_solution",
    }
    assert {name for name, budget in budgets.items() if budget is Budget.WRITING} == {
        name
        for name in budgets
        if str(name).startswith(("create_", "replace_", "delete_", "rotate_", "revoke_"))
        and name not in ("create_sizing", "create_solution")
    }


@pytest.mark.parametrize(
    ("one", "other", "share"),
    [("10.0.0.1", "10.0.0.1", True), ("10.0.0.1", "10.0.0.2", False), ("2001:db8::1", "2001:db8::2", True)],
)
def test_without_a_key_the_address_counts(one: str, other: str, share: bool) -> None:
    app = create_app(Settings(database_url="sqlite:///unused.db", reading_per_minute=1))
    with TestClient(app, base_url=LOCAL, client=(one, 1)) as client:
        assert client.get("/v1/presets/gpus").status_code == 200
        second = TestClient(app, base_url=LOCAL, client=(other, 2))
        assert second.get("/v1/presets/gpus").status_code == (429 if share else 200)


def test_each_key_has_its_own_quota_from_wherever_it_comes(migrated_sqlite: Path, tmp_path: Path) -> None:
    file = shutil.copy(migrated_sqlite, tmp_path / "a.db")
    app = create_app(Settings(database_url=f"sqlite:///{file}", reading_per_minute=1))
    one, other = make_key(app, AccessScope.READ), make_key(app, AccessScope.READ)
    with TestClient(app, base_url=LOCAL, client=("10.0.0.1", 1)) as client:
        elsewhere = TestClient(app, base_url=LOCAL, client=("10.0.0.2", 1))
        assert client.get("/v1/scenarios", headers=one).status_code == 200
        assert client.get("/v1/scenarios", headers=other).status_code == 200
        answer = elsewhere.get("/v1/scenarios", headers=one)
        assert "key" in problem(answer, 429, "rate-limited")["detail"]
        # Who has no key, or no good one, has the quota of the address.
        assert client.get("/v1/scenarios").status_code == 401
        assert client.get("/v1/scenarios").status_code == 429
        assert elsewhere.get("/v1/scenarios", headers={"Authorization": "Bearer sbk_no"}).status_code == 401


def test_what_a_key_may_not_do_counts_against_its_address(migrated_sqlite: Path, tmp_path: Path) -> None:
    file = shutil.copy(migrated_sqlite, tmp_path / "a.db")
    app = create_app(Settings(database_url=f"sqlite:///{file}", reading_per_minute=1))
    key = make_key(app, AccessScope.READ)
    with TestClient(app, base_url=LOCAL) as client:
        answer = client.post("/v1/scenarios", headers=key)
        assert answer.status_code == 403
        assert answer.headers["ratelimit"].startswith('"reading";r=0')
        assert client.post("/v1/scenarios", headers=key).status_code == 429
