"""Entity tags: If-Match before a change, If-None-Match before a read."""

import pytest
from starlette.testclient import TestClient

from tests.api.asking import SYNC, places, problem, store, stored_run

BODY = {"name": "llama", "spec": SYNC}
NAMING = ['"%d"', '"0", "%d"', '"%d","0"', '"a", "%d" , "b"', "*", " * ", ',"%d",']
NOT_NAMING = [
    '"1"',
    'W/"2"',
    '"02"',
    '"2 "',
    '"1", "3"',
    "2",
    '"',
    '""',
    '"*"',
    "abc",
    '"2',
    '*, "1"',
    "''",
    '"²"',
]


@pytest.fixture
def place(client: TestClient) -> str:
    """Return the path of a scenario that is at its revision 2."""
    path = f"/v1/scenarios/{store(client)['id']}"
    assert client.put(path, json=BODY, headers={"If-Match": '"1"'}).status_code == 200
    return path


def _header(value: str) -> dict[bytes, bytes]:
    return {b"If-Match": value.encode("latin-1")}


def test_a_header_that_names_the_revision_lets_a_change_through(client: TestClient, place: str) -> None:
    for revision, header in enumerate(NAMING, start=2):
        named = header.replace("%d", str(revision))
        answer = client.put(place, json=BODY, headers=_header(named))
        assert (answer.status_code, answer.headers["etag"]) == (200, f'"{revision + 1}"'), named


@pytest.mark.parametrize("header", NAMING)
def test_a_header_that_names_the_revision_lets_a_deletion_through(
    stored_on_both: TestClient, header: str
) -> None:
    path = f"/v1/scenarios/{store(stored_on_both, 'to be deleted')['id']}"
    named = header.replace("%d", "1")
    assert stored_on_both.delete(path, headers=_header(named)).status_code == 204


def test_a_header_that_does_not_name_it_is_stale(client: TestClient, place: str) -> None:
    for header in NOT_NAMING:
        body = problem(client.put(place, json=BODY, headers=_header(header)), 412, "stale")
        assert places(body) == [("If-Match", "stale")], header
        problem(client.delete(place, headers=_header(header)), 412, "stale")
    assert client.get(place).headers["etag"] == '"2"'


def test_a_change_without_the_header_is_asked_for_it(client: TestClient, place: str) -> None:
    without: list[dict[str, str]] = [{}, {"If-Match": ""}, {"If-Match": "  "}, {"If-None-Match": '"2"'}]
    for headers in without:
        body = problem(client.put(place, json=BODY, headers=headers), 428, "precondition-required")
        assert places(body) == [("If-Match", "missing")]
        problem(client.delete(place, headers=headers), 428, "precondition-required")
    assert client.get(place).headers["etag"] == '"2"'


def test_tags_on_several_lines_are_one_list(client: TestClient, place: str) -> None:
    headers = [("If-Match", '"1"'), ("If-Match", '"2"')]
    assert client.put(place, json=BODY, headers=headers).status_code == 200
    headers = [("If-None-Match", '"1"'), ("If-None-Match", '"3"')]
    assert client.get(place, headers=headers).status_code == 304


def test_a_run_is_deleted_by_its_digest(client: TestClient) -> None:
    run = stored_run(client, store(client))
    place = f"/v1/benchmark-runs/{run['id']}"
    tag = client.get(place).headers["etag"]
    assert tag == f'"{run["sha256"]}"'
    problem(client.delete(place), 428, "precondition-required")
    for wrong in ('"1"', f"W/{tag}", run["sha256"], f'"{run["sha256"].upper()}"', '"*"'):
        problem(client.delete(place, headers={"If-Match": wrong}), 412, "stale")
    assert client.delete(place, headers={"If-Match": f'"x", {tag}'}).status_code == 204
    problem(client.delete(place, headers={"If-Match": tag}), 404, "not-found")
    problem(client.delete(place), 404, "not-found")


def test_a_run_is_deleted_whatever_it_is(client: TestClient) -> None:
    run = stored_run(client, store(client))
    assert client.delete(f"/v1/benchmark-runs/{run['id']}", headers={"If-Match": "*"}).status_code == 204


def test_what_is_at_hand_is_not_sent_again(client: TestClient) -> None:
    made = store(client)
    run = stored_run(client, made)
    for path in (
        f"/v1/scenarios/{made['id']}",
        f"/v1/scenarios/{made['id']}/revisions/1",
        f"/v1/benchmark-runs/{run['id']}",
        f"/v1/benchmark-runs/{run['id']}/document",
    ):
        tag = client.get(path).headers["etag"]
        for known in (tag, f"W/{tag}", f'"x", {tag}', "*"):
            answer = client.get(path, headers={"If-None-Match": known})
            assert (answer.status_code, answer.content) == (304, b""), known
            assert answer.headers["etag"] == tag
            assert client.head(path, headers={"If-None-Match": known}).status_code == 304
        for unknown in ('"x"', tag.strip('"'), '"*"', ""):
            answer = client.get(path, headers={"If-None-Match": unknown})
            assert (answer.status_code, answer.headers["etag"]) == (200, tag), unknown


def test_what_has_changed_is_sent_again(client: TestClient) -> None:
    place = f"/v1/scenarios/{store(client)['id']}"
    client.put(place, json={"name": "later", "spec": SYNC}, headers={"If-Match": '"1"'})
    answer = client.get(place, headers={"If-None-Match": '"1"'})
    assert (answer.status_code, answer.json()["name"]) == (200, "later")


def test_what_is_not_there_is_not_found_whatever_is_at_hand(client: TestClient) -> None:
    place = f"/v1/scenarios/{store(client)['id']}"
    client.delete(place, headers={"If-Match": "*"})
    problem(client.get(place, headers={"If-None-Match": "*"}), 404, "not-found")
