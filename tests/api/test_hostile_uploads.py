"""Uploads that would do harm: secrets in an environment dump, damaged files, and files made to be too much."""

import gzip
import hashlib
import logging
import random
from collections.abc import Callable

import pytest
from fastapi import FastAPI
from sqlalchemy import func, select
from starlette.testclient import TestClient

from service.store import tables
from tests.api.asking import DATA, IOR_CSV, IOR_JSON, IOR_TEXT, problem, store, upload
from tests.parsers.mutations import FILES, mutated

SECRET = "hunter2-of-the-job"  # noqa: S105 - stands for one
DUMP = (
    f"STARTING ENVIRON LOOP\nTOKEN={SECRET}\nPS1=TestID : {SECRET}\nJOB_COMMENT=IOR-4.0.0: {SECRET}\n"
    f"BASH_FUNC_ml%%=() {{  eval {SECRET}\n}}\nwrite {SECRET} 1 2 3\nENDING ENVIRON LOOP\n"
).encode()
KILLED = DUMP[: DUMP.index(b"BASH_FUNC")]
MDTEST = (DATA / "benchmarks/mdtest-4.0-files-only-3iters.txt").read_bytes()
FIO = (DATA / "benchmarks/fio-3.33-seqwrite-4jobs-group.json").read_bytes()
IO500 = (DATA / "benchmarks/io500-sc25dev-debug-result_summary.txt").read_bytes()
ELBENCHO = (DATA / "benchmarks/elbencho-3.1-dirs-fpp-write-read-delete.csv").read_bytes()


def _after(data: bytes, line: bytes, inserted: bytes = DUMP) -> bytes:
    """Return a document with something inserted after the line that begins so."""
    end = data.index(b"\n", data.index(line)) + 1
    return data[:end] + inserted + data[end:]


def _prefixed(data: bytes, prefix: bytes) -> bytes:
    return b"".join(prefix + line for line in data.splitlines(keepends=True))


DUMPED = {
    "text": _after(IOR_TEXT, b"Machine "),
    "text behind a launcher's prefix": _prefixed(_after(IOR_TEXT, b"Machine "), b"[1,0]<stdout>:"),
    "text behind a prefix with a time": _prefixed(
        _after(IOR_TEXT, b"Machine "), b"2026-11-29 10:00:00 node01: "
    ),
    "text with the ends of lines of Windows": _after(IOR_TEXT, b"Machine ").replace(b"\n", b"\r\n"),
    "text in UTF-16": _after(IOR_TEXT, b"Machine ").decode().encode("utf-16"),
    "text in Latin-1": b"Zo\xeb\n" + _after(IOR_TEXT, b"Machine "),
    "text without the dump's first line": _after(IOR_TEXT, b"Machine ", DUMP.partition(b"\n")[2]),
    "a second run that was killed within the dump": IOR_TEXT
    + IOR_TEXT[: IOR_TEXT.index(b"TestID ")]
    + KILLED,
    "the same behind a prefix": _prefixed(
        IOR_TEXT + IOR_TEXT[: IOR_TEXT.index(b"TestID ")] + KILLED, b"[1,0]<stdout>:"
    ),
    "JSON among log lines": _after(IOR_JSON, b'  "Machine"'),
    "JSON behind a prefix": _prefixed(_after(IOR_JSON, b'  "Machine"'), b"[1,0]<stdout>:"),
    "JSON after the dump": DUMP + IOR_JSON,
    "JSON and a run that was killed within the dump": IOR_JSON + KILLED,
    "CSV": DUMP + IOR_CSV,
    "mdtest": _after(MDTEST, b"Command line"),
    "fio": DUMP + FIO,
    "IO500": DUMP + IO500,
    "elbencho": DUMP + ELBENCHO,
}


@pytest.mark.parametrize("document", DUMPED.values(), ids=DUMPED)
def test_an_environment_leaves_no_trace_but_a_doubt_and_the_digest(
    application: FastAPI, client: TestClient, document: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    made = store(client)
    answer = upload(client, made, document, storage_label="pfs-a")
    assert answer.status_code == 201, answer.text
    run = answer.json()
    assert "environment_removed" in {doubt["code"] for doubt in run["doubts"]}
    assert (run["sha256"], run["document_bytes"]) == (hashlib.sha256(document).hexdigest(), len(document))
    kept = client.get(f"/v1/benchmark-runs/{run['id']}/document").content
    scenario = f"/v1/scenarios/{made['id']}"
    report = client.get(f"{scenario}/gap-report")
    assert report.status_code == 200
    with application.state.database.read() as transaction:
        stored = [
            tuple(row)
            for table in tables.metadata.tables.values()
            for row in transaction.execute(select(table))
        ]
    shown = [
        answer.text,
        client.get(f"{scenario}/benchmark-runs").text,
        report.text,
        caplog.text,
        repr(stored),
    ]
    for text in (*shown, kept.decode("latin-1"), kept.decode("utf-16", errors="replace")):
        assert SECRET not in text
        assert "ENVIRON" not in text.replace("environment", "")
    # The same bytes are known again, and what is kept of them holds nothing more to be cut.
    assert upload(client, made, document).status_code == 200
    again = upload(client, made, kept)
    assert again.status_code == 201
    assert "environment_removed" not in {doubt["code"] for doubt in again.json()["doubts"]}
    assert again.json()["measurements"] == run["measurements"]


@pytest.mark.parametrize(
    "document",
    [
        IOR_TEXT[: IOR_TEXT.index(b"TestID ")] + KILLED,
        KILLED,
        DUMP,
        IOR_JSON[: IOR_JSON.index(b'  "tests"')] + KILLED,
        _after(IOR_TEXT, b"Machine ").replace(b"write     58.15", b"write     58,15"),
        _after(IOR_JSON, b'  "Machine"').replace(b'"tests"', b"tests"),
        _after(IOR_TEXT, b"write ", DUMP.replace(b"STARTING", b"").replace(b"ENDING", b"")),
        f'{{"format": "dcp-timing", "format_version": 1, "a\\nSTARTING ENVIRON LOOP {SECRET}": 1}}'.encode(),
    ],
)
def test_a_refusal_never_quotes_an_environment(
    stored_on_both: TestClient, document: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    made = store(stored_on_both, name=hashlib.sha256(document).hexdigest()[:20])
    answer = upload(stored_on_both, made, document)
    if answer.status_code == 422:
        problem(answer, 422, "unreadable-document")
    assert SECRET not in answer.text
    assert SECRET not in caplog.text


def test_a_changed_file_gets_an_answer_and_leaves_nothing_where_it_is_refused(
    stored_on_both: TestClient,
) -> None:
    made = store(stored_on_both, name="mutations")
    database = stored_on_both.app.state.database  # type: ignore[attr-defined]

    def stored() -> int:
        with database.read() as transaction:
            return sum(
                int(transaction.scalar(select(func.count()).select_from(table)))
                for table in (tables.benchmark_runs, tables.benchmark_documents)
            )

    rng = random.Random(20)  # noqa: S311 - the same changes each time
    before = stored()
    refused = 0
    for turn, name in enumerate([*FILES] * 3):
        answer = upload(stored_on_both, made, mutated(name, turn + turn // len(FILES), rng))
        assert answer.status_code in (200, 201, 409, 422), (turn, name, answer.text)
        after = stored()
        assert after - before == (2 if answer.status_code == 201 else 0)
        before = after
        refused += answer.status_code == 422
    assert refused > 50
    report = stored_on_both.get(f"/v1/scenarios/{made['id']}/gap-report")
    assert report.status_code == 200


@pytest.mark.parametrize(
    ("document", "code"),
    [
        (b'{"format": "dcp-timing", "operations": ' + b"[" * 200_000, "schema"),
        (b"[" * 200_000 + b"]" * 200_000, "unknown_format"),
        (b'{"fio version": "fio-3.33", "jobs": [], "jobs": []}', "duplicate_key"),
        (b"\n".join([IOR_TEXT[: IOR_TEXT.index(b"\n")]] * 20_000), "too_many_results"),
        (b"x\n" * 10_000_001, "too_many_lines"),
    ],
    ids=["deep", "deep and whole", "twice", "runs", "lines"],
)
@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_too_much_of_anything_is_refused(
    stored_on_both: TestClient, document: bytes, code: str, pack: Callable[[bytes], bytes]
) -> None:
    made = store(stored_on_both, name=f"{code} {pack.__name__} {len(document)}")
    packed = {"Content-Encoding": "gzip"} if pack is gzip.compress else {}
    answer = stored_on_both.post(
        f"/v1/scenarios/{made['id']}/benchmark-runs", content=pack(document), headers=packed
    )
    assert [error["code"] for error in problem(answer, 422, "unreadable-document")["errors"]] == [code]
