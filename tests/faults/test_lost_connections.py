"""Connections to Postgres that are lost: a 503 that says when to come again, nothing twice, and no help needed."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

from tests.faults.asking import (
    Answer,
    Client,
    all_at_once,
    ask,
    assert_unavailable,
    document,
    runs_of,
    scenario_body,
    service,
    stored_scenario,
    until,
)
from tests.faults.broken_wire import Loses, broken_wire
from tests.faults.crashing_postgres import CrashingPostgres
from tests.faults.holding import held_postgres, waiting
from tests.faults.holding import postgres as connected
from tests.faults.records import assert_whole, count

KEY = {"Idempotency-Key": "a-key"}


def test_a_postgres_that_ends_and_comes_back_is_found_again(own_postgres: CrashingPostgres) -> None:
    with service(own_postgres.url, ready_seconds=30) as running:
        port = running.port
        path = f"/v1/scenarios/{stored_scenario(port)}"

        def read() -> Answer:
            return ask(port, "GET", path)

        before = read().body
        # The pool is full of connections, all of which are lost.
        assert {answer.status for answer in all_at_once([read] * 20)} == {200}
        own_postgres.ask(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = 'stallbudget'"
        )
        assert {answer.status for answer in all_at_once([read] * 20)} == {200}
        for end in (own_postgres.stop, own_postgres.crash):
            end()
            for answer in all_at_once([read] * 20):
                assert_unavailable(answer)
            assert_unavailable(ask(port, "PUT", path, scenario_body("b"), {"If-Match": '"1"'}))
            assert_unavailable(ask(port, "GET", "/readyz"))
            assert ask(port, "GET", "/livez").status == 200
            own_postgres.start()
            assert {answer.status for answer in all_at_once([read] * 20)} == {200}
            assert ask(port, "GET", "/readyz").status == 200
        assert read().body == before


def test_a_connection_that_is_lost_within_a_transaction_leaves_nothing_of_it(
    own_postgres: CrashingPostgres,
) -> None:
    url = own_postgres.url
    with service(url) as running, ThreadPoolExecutor(3) as pool:
        port = running.port
        scenario_id = stored_scenario(port)
        replaced = f"/v1/scenarios/{stored_scenario(port, 'replaced')}"
        changes = [
            ("POST", runs_of(scenario_id), document(0), KEY),
            ("POST", "/v1/scenarios", scenario_body("made"), {}),
            ("PUT", replaced, scenario_body("other"), {"If-Match": '"1"'}),
        ]
        with held_postgres(url) as count_within, connected(url) as administrator:
            asked = [pool.submit(ask, port, *change) for change in changes]
            until(lambda: count_within() == len(changes))
            for pid in waiting(administrator):
                administrator.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
            for answer in asked:
                assert_unavailable(answer.result())
        assert assert_whole(url, scenario_id, {}, sent=1) == set()
        assert [count(url, table) for table in ("scenarios", "scenario_revisions")] == [2, 2]
        assert [ask(port, *change).status for change in changes] == [201, 201, 200]


def test_a_commit_of_which_nobody_heard_is_unavailable_and_done_once_when_repeated(
    own_postgres: CrashingPostgres,
) -> None:
    with broken_wire(own_postgres.socket) as wire, service(wire.url) as running:
        port = running.port
        cases = [(loses, headers) for loses in (Loses.COMMIT, Loses.ANSWER) for headers in ({}, KEY)]
        for number, (loses, headers) in enumerate(cases):
            scenario_id = stored_scenario(port, f"scenario {number}")
            is_done = loses is Loses.ANSWER
            for request in (
                ("POST", runs_of(scenario_id), document(number)),
                ("POST", "/v1/scenarios", scenario_body(f"made {number}")),
            ):
                key = {name: f"{value}-{number}-{len(request[1])}" for name, value in headers.items()}
                wire.loses = loses
                assert_unavailable(ask(port, *request, key))
                assert wire.loses is Loses.NOTHING
                again = ask(port, *request, key)
                if not is_done or key:
                    assert again.status == 201, again.body
                    assert ("idempotency-replayed" in again.headers) == is_done
                else:
                    # The bytes of a run tell that it is stored, the name of a scenario that it is taken.
                    assert again.status == (200 if "benchmark-runs" in request[1] else 409)
            path = f"/v1/scenarios/{scenario_id}"
            wire.loses = loses
            change = ("PUT", path, scenario_body(f"replaced {number}"), {"If-Match": '"1"'})
            assert_unavailable(ask(port, *change))
            assert ask(port, *change).status == (412 if is_done else 200)
            assert ask(port, "GET", path).json()["revision"] == 2


def test_what_its_sender_gives_up_is_stored_whole_and_holds_nothing_up(
    own_postgres: CrashingPostgres,
) -> None:
    url = own_postgres.url
    with service(url, pool_size=2) as running:
        port = running.port
        scenario_id = stored_scenario(port)
        with held_postgres(url) as count_within:
            for number in range(2):
                with closing(Client(port)) as client:
                    client.send("POST", runs_of(scenario_id), document(number))
                    until(lambda at_least=number + 1: count_within() == at_least)  # type: ignore[misc]
        # Both connections of the pool come free, and what was begun is done.
        until(lambda: len(ask(port, "GET", runs_of(scenario_id)).json()["items"]) == 2)
        assert assert_whole(url, scenario_id, {}, sent=2) == {0, 1}
        assert ask(port, "POST", runs_of(scenario_id), document(2)).status == 201


def test_when_every_thread_waits_the_process_is_alive_and_nobody_waits_for_ever(
    own_postgres: CrashingPostgres,
) -> None:
    url = own_postgres.url
    with service(url, pool_size=2, lock_seconds=1) as running, ThreadPoolExecutor(8) as pool:
        port = running.port
        scenario_id = stored_scenario(port)
        with held_postgres(url) as count_within:
            posted = [
                pool.submit(ask, port, "POST", runs_of(scenario_id), document(number)) for number in range(8)
            ]
            until(lambda: count_within() == 2)
            assert ask(port, "GET", "/livez").status == 200
            for answer in posted:
                assert_unavailable(answer.result())
        assert assert_whole(url, scenario_id, {}, sent=8) == set()
        assert ask(port, "POST", runs_of(scenario_id), document(0)).status == 201
