"""Another process holds SQLite's only write lock: reading goes on, writing waits, and is told when to come again."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.faults.asking import (
    all_at_once,
    ask,
    assert_unavailable,
    document,
    runs_of,
    service,
    stored_scenario,
)
from tests.faults.records import assert_whole

_HOLDER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=60)
connection.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.readline()
connection.execute("ROLLBACK")
connection.close()
"""


@contextmanager
def _held_by_another_process(file: Path) -> Iterator[None]:
    with subprocess.Popen(
        [sys.executable, "-c", _HOLDER, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        try:
            assert holder.stdout.readline() == "held\n"
            yield
            holder.stdin.write("\n")
            holder.stdin.flush()
            assert holder.wait(timeout=30) == 0
        finally:
            holder.kill()


def test_a_lock_of_another_process_is_waited_for_and_then_a_503(tmp_path: Path) -> None:
    file = tmp_path / "locked.db"
    url = f"sqlite:///{file}"
    with service(url, lock_seconds=0.2) as running:
        port = running.port
        scenario_id = stored_scenario(port)
        path, runs = f"/v1/scenarios/{scenario_id}", runs_of(scenario_id)
        with _held_by_another_process(file):
            assert ask(port, "GET", path).status == 200
            assert ask(port, "GET", "/readyz").status == 200
            answers = all_at_once(
                [lambda n=n: ask(port, "POST", runs, document(n)) for n in range(4)]
                + [lambda: ask(port, "DELETE", path, headers={"If-Match": "*"})]
            )
            for answer in answers:
                assert_unavailable(answer)
            assert ask(port, "GET", runs).json()["items"] == []
        receipts = {n: ask(port, "POST", runs, document(n)) for n in range(4)}
        assert {answer.status for answer in receipts.values()} == {201}
        assert_whole(url, scenario_id, {n: answer.json() for n, answer in receipts.items()}, sent=4)
