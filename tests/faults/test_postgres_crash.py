"""Postgres crashes, and recovers: what was acknowledged is there, whole, and the service goes on by itself."""

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
from tests.faults.crashing_postgres import CrashingPostgres
from tests.faults.holding import held_postgres
from tests.faults.records import assert_whole

UPLOADS = 1000
CRASHES_AT = (300, 700)
"""After so many acknowledgements Postgres crashes."""


def test_what_was_acknowledged_of_a_thousand_uploads_outlives_crashes_of_postgres(
    own_postgres: CrashingPostgres,
) -> None:
    with service(own_postgres.url) as running:
        uploads = Uploads(stored_scenario(running.port), UPLOADS)
        with uploads.going_to(running.port):
            for crashes, acknowledged in enumerate(CRASHES_AT, start=1):
                uploads.wait_for(lambda n=acknowledged: len(uploads.receipts) >= n)  # type: ignore[misc]
                # Each client's run and document are written, and not yet committed.
                with suppress(psycopg.OperationalError), held_postgres(own_postgres.url) as count_within:
                    until(lambda: count_within() == uploads.clients)
                    uploads.pause()
                    own_postgres.crash()
                uploads.wait_for(lambda n=crashes: len(uploads.refused) == n * uploads.clients)  # type: ignore[misc]
                own_postgres.start()
                uploads.go_on_at(running.port)
        assert uploads.unanswered == []
        assert len(uploads.refused) == len(CRASHES_AT) * uploads.clients
        for refusal in uploads.refused.values():
            assert_unavailable(refusal)
        # None of those had come to its COMMIT.
        there = assert_whole(own_postgres.url, uploads.scenario_id, uploads.receipts, sent=UPLOADS)
        assert there == uploads.receipts.keys()
        for number in uploads.refused:
            again = ask(running.port, "POST", runs_of(uploads.scenario_id), document(number))
            assert again.status == 201
    assert len(assert_whole(own_postgres.url, uploads.scenario_id, uploads.receipts, sent=UPLOADS)) == UPLOADS
