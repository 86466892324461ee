"""Schemathesis asks the running service, with keys on, whatever the OpenAPI document says, and what it does not."""

import os
import re
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from service.store.caller import AccessScope
from service.store.database import Database
from tests.api.keyring import store_key
from tests.faults.asking import ask, service
from tests.faults.holding import is_sqlite

ROOT = Path(__file__).parent.parent.parent
MADE = {
    "GET /v1/scenarios/{scenario_id} 200",
    "POST /v1/scenarios/{scenario_id}/benchmark-runs 201",
    "GET /v1/api-keys/{key_id} 200",
}
"""What can only be reached by way of something that another operation made."""
PHASES = {"sqlite": "examples,coverage,fuzzing,stateful", "postgres": "examples,fuzzing,stateful"}
"""The coverage takes most of the time, and hardly any of it reaches the database."""


def test_nothing_that_the_document_allows_or_forbids_is_answered_otherwise_than_it_says(
    database_url: str, tmp_path: Path
) -> None:
    with closing(Database(database_url)) as database:
        key = store_key(database, AccessScope.ADMIN)
    said: list[str] = []
    # Wrong keys are sent too, and an address that sends many has to wait: the hooks give each request its own.
    with service(database_url, said, trusted_proxies="127.0.0.1") as running:
        ended = subprocess.run(
            [
                *(sys.executable, "-m", "schemathesis.cli"),
                *("--config-file", str(ROOT / "tests" / "contract" / "schemathesis.toml")),
                *("run", f"http://127.0.0.1:{running.port}/openapi.json", "--checks", "all", "--no-color"),
                *("--phases", PHASES["sqlite" if is_sqlite(database_url) else "postgres"]),
            ],
            cwd=tmp_path,
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT),
                "STALLBUDGET_API_KEY": key["Authorization"].removeprefix("Bearer "),
            },
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
        # The key was not revoked on the way, after which everything would have been refused.
        assert ask(running.port, "GET", "/v1/scenarios", headers=key).status == 200
    answered = {
        " ".join(found.groups())
        for found in re.finditer(r"method=(\S+) route=(\S+) status=(\d+)", "".join(said))
    }
    assert answered >= MADE
    assert not [each for each in answered if each.split()[-1] >= "500"]
