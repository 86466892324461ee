"""Two processes of the service on one database: what is the same is stored once, and of edits at once one wins."""

from collections import Counter
from functools import partial

import pytest

from tests.faults.asking import (
    Answer,
    all_at_once,
    ask,
    document,
    runs_of,
    scenario_body,
    stored_scenario,
)
from tests.faults.records import assert_whole, count

POSTS = 50
EDITS = 20


def test_fifty_posts_of_the_same_bytes_make_one_run(two: tuple[int, int], shared_url: str) -> None:
    scenario_id = stored_scenario(two[0])
    answers = all_at_once(
        [partial(ask, two[n % 2], "POST", runs_of(scenario_id), document(0)) for n in range(POSTS)]
    )
    assert Counter(answer.status for answer in answers) == {201: 1, 200: POSTS - 1}
    receipt = answers[0].json()
    assert all(answer.json() == receipt for answer in answers)
    assert_whole(shared_url, scenario_id, {0: receipt}, sent=1)


@pytest.mark.parametrize("what", ["run", "scenario"])
def test_fifty_posts_under_one_idempotency_key_are_done_once(
    two: tuple[int, int], shared_url: str, what: str
) -> None:
    scenario_id = stored_scenario(two[0])
    path, body = (
        (runs_of(scenario_id), document(0)) if what == "run" else ("/v1/scenarios", scenario_body("once"))
    )
    questions = [
        partial(ask, two[n % 2], "POST", path, body, {"Idempotency-Key": "a-key"}) for n in range(POSTS)
    ]
    answers = all_at_once(questions)  # type: ignore[arg-type]
    done = [answer for answer in answers if answer.status == 201]
    assert sum("idempotency-replayed" not in answer.headers for answer in done) == 1
    # Whoever came while it was being done is told to come again, and then hears what became of it.
    for answer, question in zip(answers, questions, strict=True):
        if answer.status != 201:
            assert answer.status == 409
            assert answer.json()["type"] == "/problems/idempotency-key-in-use"
            assert int(answer.headers["retry-after"]) > 0
            later: Answer = question()
            assert (later.status, later.headers["idempotency-replayed"]) == (201, "true")
            done.append(later)
    assert len({answer.body for answer in done}) == 1
    assert count(shared_url, "audit_events") == 2
    if what == "run":
        assert_whole(shared_url, scenario_id, {0: done[0].json()}, sent=1)
    else:
        assert count(shared_url, "scenarios") == 2


def test_of_edits_at_once_one_wins_and_the_others_are_stale(two: tuple[int, int], shared_url: str) -> None:
    path = f"/v1/scenarios/{stored_scenario(two[0])}"
    for revision in (1, 2):
        answers = all_at_once(
            [
                partial(
                    ask,
                    two[n % 2],
                    "PUT",
                    path,
                    scenario_body(f"edit {revision} {n}"),
                    {"If-Match": f'"{revision}"'},
                )
                for n in range(EDITS)
            ]
        )
        assert Counter(answer.status for answer in answers) == {200: 1, 412: EDITS - 1}
        winner = next(answer for answer in answers if answer.status == 200)
        for port in two:
            assert ask(port, "GET", path).body == winner.body
    assert count(shared_url, "scenario_revisions") == 3
    assert count(shared_url, "audit_events") == 3


def test_of_a_replacement_and_deletions_at_once_one_wins(two: tuple[int, int], shared_url: str) -> None:
    path = f"/v1/scenarios/{stored_scenario(two[0])}"
    changes = [("PUT", scenario_body("edited")), ("DELETE", None)] * (EDITS // 2)
    answers = all_at_once(
        [
            partial(ask, two[n // 2 % 2], method, path, body, {"If-Match": '"1"'})
            for n, (method, body) in enumerate(changes)
        ]
    )
    # Behind a deletion there is nothing left to be stale.
    won = [answer.status for answer in answers if answer.status < 300]
    assert won in ([200], [204])
    assert {answer.status for answer in answers} - set(won) == {412 if won == [200] else 404}
    assert count(shared_url, "scenarios") == (won == [200])


def test_uploads_beside_the_deletion_of_their_scenario_are_stored_before_it_or_not_at_all(
    two: tuple[int, int], shared_url: str
) -> None:
    scenario_id = stored_scenario(two[0])
    deletion = partial(
        ask, two[0], "DELETE", f"/v1/scenarios/{scenario_id}?runs=delete", None, {"If-Match": "*"}
    )
    uploads = [partial(ask, two[n % 2], "POST", runs_of(scenario_id), document(n)) for n in range(EDITS)]
    answers = all_at_once([*uploads[:10], deletion, *uploads[10:]])
    statuses = Counter(answer.status for answer in answers)
    assert statuses[204] == 1
    assert statuses[201] + statuses[404] == EDITS
    for table in (
        "scenarios",
        "scenario_revisions",
        "benchmark_runs",
        "benchmark_documents",
        "document_bodies",
    ):
        assert count(shared_url, table) == 0
    # Each run that was stored was audited, and so was its end.
    assert count(shared_url, "audit_events") == 2 + 2 * statuses[201]
