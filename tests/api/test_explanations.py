"""/problems and /doubts: every type and every code has a page that says what it means and how to cure it."""

import pytest
from starlette.testclient import TestClient

from service.api.problems import KINDS
from service.judgement.doubts import FLATTERS, VOIDS
from service.parsers.measurement import DoubtCode
from tests.api.asking import problem


def test_every_problem_type_is_listed_with_its_page(stateless: TestClient) -> None:
    items = stateless.get("/problems").json()["items"]
    assert [item["type"] for item in items] == [f"/problems/{name}" for name in KINDS]
    for item in items:
        assert stateless.get(item["type"]).json() == item
        assert set(item) == {"type", "title", "status", "meaning", "cure"}
        assert all(item.values())


def test_every_doubt_is_listed_with_its_page(stateless: TestClient) -> None:
    items = stateless.get("/doubts").json()["items"]
    assert [item["code"] for item in items] == list(DoubtCode)
    for item in items:
        assert stateless.get(f"/doubts/{item['code']}").json() == item
        assert set(item) == {"code", "title", "meaning", "effect", "cure"}
        assert all(item.values())


def test_a_page_says_what_a_doubt_does_to_a_judgement(stateless: TestClient) -> None:
    for code in DoubtCode:
        effect = stateless.get(f"/doubts/{code}").json()["effect"]
        assert ("never met" in effect) == (code in FLATTERS or code is DoubtCode.BLOCK_SMALLER_THAN_SHARD)
        assert ("proves nothing" in effect) == (code in VOIDS)


@pytest.mark.parametrize("path", ["/problems/stale", "/doubts/wide_spread"])
@pytest.mark.parametrize(
    ("accept", "media_type"),
    [
        ("text/html", "text/html"),
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "text/html"),
        ("application/json", "application/json"),
        ("*/*", "application/json"),
        ("text/html;q=0.5, application/json", "application/json"),
        ("text/*, application/json;q=0.2", "text/html"),
    ],
)
def test_a_browser_gets_a_page_and_a_program_json(
    stateless: TestClient, path: str, accept: str, media_type: str
) -> None:
    answer = stateless.get(path, headers={"Accept": accept})
    assert answer.status_code == 200
    assert answer.headers["content-type"].split(";")[0] == media_type
    assert answer.headers["vary"] == "Accept"
    assert (answer.text.startswith("<!doctype html>")) == (media_type == "text/html")


@pytest.mark.parametrize("name", ["none", "STALE", "<b>", "%00", "x" * 3000, "%ff"])
def test_what_has_no_page_is_not_found(stateless: TestClient, name: str) -> None:
    for path in ("/problems", "/doubts"):
        body = problem(stateless.get(f"{path}/{name}"), 404, "not-found")
        assert len(body["detail"]) < 400
