"""The primary of Postgres is lost, and its standby takes over: nothing acknowledged is lost, nothing restarted."""

from contextlib import suppress

import psycopg

from tests.faults.asking import (
    Uploads,
    ask,
    assert_unavailable,
    document,
    runs_of,
    service,
    stored_scenario,
    until,
)
from tests.faults.broken_wire import broken_wire
from tests.faults.crashing_postgres import CrashingPostgres
from tests.faults.holding import held_postgres
from tests.faults.records import assert_whole

UPLOADS = 200
LOST_AT = 100
"""After so many acknowledgements the primary is lost."""


def test_a_service_that_knows_both_servers_goes_on_with_the_standby(own_postgres: CrashingPostgres) -> None:
    with own_postgres.standby() as standby:
        both = f"{own_postgres.url}&host={standby.address}&target_session_attrs=read-write"
        with service(both) as running:
            uploads = Uploads(stored_scenario(running.port), UPLOADS)
            with uploads.going_to(running.port):
                uploads.wait_for(lambda: len(uploads.receipts) >= LOST_AT)
                with suppress(psycopg.OperationalError), held_postgres(own_postgres.url) as count_within:
                    until(lambda: count_within() == uploads.clients)
                    uploads.pause()
                    own_postgres.crash()
                uploads.wait_for(lambda: len(uploads.refused) == uploads.clients)
                # The standby alone may not be written to.
                assert_unavailable(ask(running.port, "GET", "/v1/scenarios"))
                standby.promote()
                uploads.go_on_at(running.port)
            assert uploads.unanswered == []
            for number, refusal in uploads.refused.items():
                assert_unavailable(refusal)
                assert ask(running.port, "POST", runs_of(uploads.scenario_id), document(number)).status == 201
        there = assert_whole(standby.url, uploads.scenario_id, uploads.receipts, sent=UPLOADS)
        assert len(there) == UPLOADS


def test_a_service_whose_address_moves_to_the_standby_reads_at_once_and_writes_when_that_may(
    own_postgres: CrashingPostgres,
) -> None:
    with own_postgres.standby() as standby, broken_wire(own_postgres.socket) as wire:
        with service(wire.url) as running:
            port = running.port
            scenario_id = stored_scenario(port)
            runs = runs_of(scenario_id)
            first = ask(port, "POST", runs, document(0)).json()
            own_postgres.crash()
            wire.leads_to = standby.socket
            assert ask(port, "GET", runs).json()["items"] == [first]
            refusal = ask(port, "POST", runs, document(1))
            assert_unavailable(refusal)
            assert "may not be written to" in refusal.json()["detail"]
            standby.promote()
            second = ask(port, "POST", runs, document(1))
            assert second.status == 201
        assert assert_whole(standby.url, scenario_id, {0: first, 1: second.json()}, sent=2) == {0, 1}
