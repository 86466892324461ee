"""create_app: makes everything anew, connects at the first request, and closes what it opened."""

import anyio.to_thread
from fastapi import FastAPI
from starlette.testclient import TestClient

from service import __version__
from service.api.examples import LLAMA_405B_SYNC
from service.app import create_app
from service.settings import Settings
from tests.api.asking import LOCAL


def _app(database_url: str, **settings: int) -> FastAPI:
    return create_app(Settings(database_url=database_url, **settings))  # type: ignore[arg-type]


def test_two_services_in_one_process_share_nothing(database_url: str, tmp_path: object) -> None:
    with (
        TestClient(_app(database_url), base_url=LOCAL) as one,
        TestClient(_app(f"sqlite:///{tmp_path}/other.db"), base_url=LOCAL) as other,
    ):
        body = {"name": "a", "spec": LLAMA_405B_SYNC}
        assert one.post("/v1/scenarios", json=body).status_code == 201
        assert other.get("/v1/scenarios").status_code == 503
        assert one.get("/readyz").status_code == 200


def test_making_a_service_opens_no_database() -> None:
    app = _app("postgresql://nobody@127.0.0.1:1/nothing")
    with TestClient(app, base_url=LOCAL) as client:
        assert client.get("/livez").status_code == 200
    assert app.state.database.engine.pool.checkedin() == 0


def test_a_service_that_ends_closes_its_connections(database_url: str) -> None:
    app = _app(database_url)
    with TestClient(app, base_url=LOCAL) as client:
        assert client.get("/readyz").status_code == 200
        assert app.state.database.engine.pool.checkedin() > 0
    assert app.state.database.engine.pool.checkedin() == 0


def test_what_was_stored_is_there_after_a_restart(database_url: str) -> None:
    with TestClient(_app(database_url), base_url=LOCAL) as before:
        answer = before.post("/v1/scenarios", json={"name": "a", "spec": LLAMA_405B_SYNC})
    with TestClient(_app(database_url), base_url=LOCAL) as after:
        assert after.get(answer.headers["location"]).content == answer.content


def test_there_are_as_many_threads_as_connections(tmp_path: object) -> None:
    app = _app(f"sqlite:///{tmp_path}/a.db", pool_size=3)

    @app.get("/tokens")
    async def get_tokens() -> float:
        return anyio.to_thread.current_default_thread_limiter().total_tokens

    with TestClient(app, base_url=LOCAL) as client:
        assert client.get("/tokens").json() == 3
    assert app.state.database.engine.pool.size() == 3


def test_the_limits_are_those_of_the_settings(tmp_path: object) -> None:
    with TestClient(_app(f"sqlite:///{tmp_path}/a.db", max_json_bytes=1024), base_url=LOCAL) as client:
        assert client.post("/v1/sizings", content=" " * 1025).status_code == 413
        assert client.post("/v1/sizings", content=" " * 1024).status_code == 400


def test_the_document_has_the_version_of_the_package(tmp_path: object) -> None:
    app = _app(f"sqlite:///{tmp_path}/a.db")
    assert app.openapi()["info"]["version"] == __version__
