"""The service is killed while it stores: what it acknowledged is there, whole, and nothing by halves."""

import signal
from contextlib import ExitStack, closing

from tests.faults.asking import (
    Client,
    Uploads,
    ask,
    document,
    runs_of,
    scenario_body,
    service,
    stored_scenario,
    until,
)
from tests.faults.holding import held_before_the_audit, is_sqlite
from tests.faults.records import assert_whole, count

UPLOADS = 1000
KILLED_AT = (300, 700)
"""After so many acknowledgements a service is killed."""


def test_what_was_acknowledged_of_a_thousand_uploads_outlives_kills(database_url: str) -> None:
    with ExitStack() as services:
        running = services.enter_context(service(database_url))
        uploads = Uploads(stored_scenario(running.port), UPLOADS)
        with uploads.going_to(running.port):
            for acknowledged in KILLED_AT:
                uploads.wait_for(lambda n=acknowledged: len(uploads.receipts) >= n)  # type: ignore[misc]
                # It stops wherever it is, mostly within a transaction. Each client then comes to wait for an answer.
                running.process.send_signal(signal.SIGSTOP)
                uploads.wait_for(lambda: uploads.in_flight == uploads.clients)
                uploads.pause()
                running.kill()
                uploads.wait_for(lambda: uploads.in_flight == 0)
                running = services.enter_context(service(database_url))
                uploads.go_on_at(running.port)
        assert len(uploads.unanswered) == len(KILLED_AT) * uploads.clients
        assert uploads.refused == {}
        there = assert_whole(database_url, uploads.scenario_id, uploads.receipts, sent=UPLOADS)
        # Whoever heard nothing sends it again: it is stored once, whichever way it went.
        for number in uploads.unanswered:
            again = ask(running.port, "POST", runs_of(uploads.scenario_id), document(number))
            assert again.status == (200 if number in there else 201)
            uploads.receipts[number] = again.json()
    assert len(assert_whole(database_url, uploads.scenario_id, uploads.receipts, sent=UPLOADS)) == UPLOADS


def test_a_service_that_is_killed_within_a_transaction_leaves_nothing_of_it(database_url: str) -> None:
    with service(database_url) as running:
        scenario_id = stored_scenario(running.port)
        path = f"/v1/scenarios/{scenario_id}"
        run = ask(running.port, "POST", runs_of(scenario_id), document(0)).json()
        before = ask(running.port, "GET", path).body
        others = [stored_scenario(running.port, name) for name in ("replaced", "deleted")]
        changes = [
            ("POST", runs_of(scenario_id), document(1)),
            ("PUT", f"/v1/scenarios/{others[0]}", scenario_body("other")),
            ("DELETE", f"/v1/scenarios/{others[1]}", None),
        ]
        scenarios = ask(running.port, "GET", "/v1/scenarios").body
        with held_before_the_audit(database_url) as count_within, ExitStack() as clients:
            for sent, (method, path_, body) in enumerate(changes, start=1):
                client = clients.enter_context(closing(Client(running.port)))
                client.send(method, path_, body, {"If-Match": "*"})
                # SQLite has one writer: behind the first change the others have not begun.
                within = 1 if is_sqlite(database_url) else sent
                until(lambda at_least=within: count_within() >= at_least)  # type: ignore[misc]
            running.kill()
    with service(database_url) as running:
        assert ask(running.port, "GET", "/v1/scenarios").body == scenarios
        assert ask(running.port, "GET", path).body == before
        assert ask(running.port, "GET", runs_of(scenario_id)).json()["items"] == [run]
        assert_whole(database_url, scenario_id, {0: run}, sent=1)
        assert count(database_url, "scenario_revisions") == 3
        for method, path_, body in changes:
            assert ask(running.port, method, path_, body, {"If-Match": "*"}).status in (200, 201, 204)
