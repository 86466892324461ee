"""/livez, /readyz, /openapi.json, /docs and /: what operators and browsers ask."""

from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import text
from starlette.testclient import TestClient

from service.app import create_app
from service.settings import Settings
from service.store import migrate
from service.store.database import Database
from tests.api.asking import LOCAL, SYNC, problem


def _service(url: str) -> TestClient:
    return TestClient(create_app(Settings(database_url=url)), raise_server_exceptions=False, base_url=LOCAL)


def test_a_migrated_database_is_ready(client: TestClient) -> None:
    assert client.get("/readyz").json() == {"status": "ready"}


def test_a_database_that_is_not_migrated_is_not_ready_until_it_is(empty_database_url: str) -> None:
    with _service(empty_database_url) as client:
        answer = client.get("/readyz")
        assert "stallbudget migrate" in problem(answer, 503, "unavailable")["detail"]
        assert int(answer.headers["retry-after"]) > 0
        problem(client.get("/v1/scenarios"), 503, "unavailable")
        problem(client.post("/v1/scenarios", json={"name": "a", "spec": SYNC}), 503, "unavailable")
        assert client.get("/livez").json() == {"status": "alive"}
        with closing(Database(empty_database_url)) as database:
            migrate.upgrade(database)
        assert client.get("/readyz").status_code == 200
        assert client.get("/v1/scenarios").status_code == 200


def test_a_database_of_another_version_is_not_ready(database_url: str, client: TestClient) -> None:
    def move(revision: str | None) -> None:
        with closing(Database(database_url)) as database, database.begin() as transaction:
            transaction.execute(text("UPDATE alembic_version SET version_num = :to"), {"to": revision})

    try:
        move("9999")
        problem(client.get("/readyz"), 503, "unavailable")
    finally:
        move(migrate.head())
    assert client.get("/readyz").status_code == 200


def test_a_postgres_that_is_gone_is_not_ready() -> None:
    # Port 1 of this machine: nobody listens there.
    with _service("postgresql://nobody:hunter2@127.0.0.1:1/nothing") as client:
        for path in ("/readyz", "/v1/scenarios"):
            answer = client.get(path)
            problem(answer, 503, "unavailable")
            assert "retry-after" in answer.headers
            assert "hunter2" not in answer.text
        assert client.get("/livez").status_code == 200


def test_a_sqlite_in_a_folder_that_is_gone_is_not_ready(tmp_path: Path) -> None:
    with _service(f"sqlite:///{tmp_path / 'gone' / 'a.db'}") as client:
        assert "no folder" in problem(client.get("/readyz"), 503, "unavailable")["detail"]


def test_a_file_that_is_no_database_is_not_ready(tmp_path: Path) -> None:
    file = tmp_path / "notes.db"
    file.write_text("This is no database. " * 100)
    with _service(f"sqlite:///{file}") as client:
        problem(client.get("/readyz"), 503, "unavailable")
        problem(client.post("/v1/scenarios", json={"name": "a", "spec": SYNC}), 503, "unavailable")
    assert file.read_text().startswith("This is no database.")


@pytest.mark.parametrize("accept", ["text/html", "text/html,application/xhtml+xml,*/*;q=0.8", "*/*"])
def test_the_start_leads_to_the_documentation(stateless: TestClient, accept: str) -> None:
    answer = stateless.get("/", headers={"Accept": accept}, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (307, "/docs")
    page = stateless.get("/", headers={"Accept": accept})
    assert page.status_code == 200
    assert page.headers["content-type"].startswith("text/html")


def test_the_documentation_needs_nothing_from_elsewhere(stateless: TestClient) -> None:
    page = stateless.get("/docs").text
    assert "http://" not in page
    assert "https://" not in page
    for name, media_type in (
        ("swagger-ui-bundle.js", "text/javascript"),
        ("swagger-ui.css", "text/css"),
        ("favicon.png", "image/png"),
    ):
        assert f'"/docs/{name}"' in page.replace("'", '"')
        answer = stateless.get(f"/docs/{name}", headers={"Accept": media_type})
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith(media_type)
        assert len(answer.content) > 100
    assert "/openapi.json" in page


def test_the_document_is_served(stateless: TestClient) -> None:
    assert stateless.get("/openapi.json").json()["openapi"].startswith("3.1")


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/openapi.json", "/docs", "/"])
def test_what_operators_ask_is_not_in_the_document(stateless: TestClient, path: str) -> None:
    assert path not in stateless.get("/openapi.json").json()["paths"]
