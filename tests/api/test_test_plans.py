"""GET …/test-plan: its forms, its parameters, and the address that it takes from the request."""

from urllib.parse import urlsplit

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from service import __version__
from service.api.test_plans import TEXTS
from service.store.caller import AccessScope
from tests.api.asking import ASYNC, LOCAL, NOWHERE, SYNC, Json, changed, nulls, places, problem, store
from tests.api.keyring import make_key

PARAMETERS = {"directory": "/mnt/a b", "storage_label": "pfs-a", "nodes": "16"}


def _path(scenario: Json) -> str:
    return f"/v1/scenarios/{scenario['id']}/test-plan"


def test_a_plan_is_json_without_nulls(client: TestClient) -> None:
    made = store(client, spec=ASYNC)
    answer = client.get(_path(made), params=PARAMETERS)
    assert answer.status_code == 200
    plan = answer.json()
    assert nulls(plan) == []
    assert (plan["engine_version"], plan["scenario_id"], plan["scenario_revision"]) == (
        __version__,
        made["id"],
        1,
    )
    assert (plan["name"], plan["storage_label"], plan["directory"]) == ("llama", "pfs-a", "/mnt/a b")
    assert (plan["nodes"], plan["scenario_nodes"], plan["full_scale"], plan["launcher"]) == (
        16,
        2048,
        False,
        "mpirun",
    )
    assert plan["url"] == LOCAL
    targets = [target["id"] for target in client.post("/v1/sizings", json=ASYNC).json()["targets"]]
    proved = {proof["target_id"] for test in plan["tests"] for proof in test["proofs"]}
    assert proved == set(targets)


@pytest.mark.parametrize(
    ("accept", "media_type"),
    [
        ("*/*", "application/json"),
        ("application/*", "application/json"),
        ("text/*", "text/markdown"),
        ("text/markdown", "text/markdown"),
        ("text/x-shellscript", "text/x-shellscript"),
        ("application/x-slurm", "application/x-slurm"),
        ("application/json;q=0.5, text/x-shellscript", "text/x-shellscript"),
        ("text/html, text/markdown;q=0.9, */*;q=0.1", "text/markdown"),
        ("text/markdown;q=0.2, application/json;q=0.3", "application/json"),
    ],
)
def test_accept_decides_the_form(stored_on_sqlite: TestClient, accept: str, media_type: str) -> None:
    made = store(stored_on_sqlite, name=f"a form of {accept}")
    answer = stored_on_sqlite.get(_path(made), headers={"Accept": accept})
    assert answer.status_code == 200
    assert answer.headers["content-type"].split(";")[0] == media_type
    assert answer.headers["vary"] == "Accept, Host"
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_scripts_have_a_name_and_say_what_they_are(client: TestClient) -> None:
    made = store(client)
    folder = f"stallbudget-{made['id'][:8]}-r1"
    for form, suffix, second in (
        ("text/x-shellscript", ".sh", "# Tests of the storage"),
        ("application/x-slurm", ".sbatch", "#SBATCH --job-name"),
    ):
        answer = client.get(_path(made), headers={"Accept": form})
        assert answer.headers["content-disposition"] == f'attachment; filename="{folder}{suffix}"'
        assert answer.text.splitlines()[0] == "#!/bin/sh"
        assert answer.text.splitlines()[1].startswith(second)
    page = client.get(_path(made), headers={"Accept": "text/markdown"})
    assert "content-disposition" not in page.headers
    assert page.text.startswith("# Test plan: llama\n")


def test_a_form_that_there_is_not_is_406(client: TestClient) -> None:
    answer = client.get(_path(store(client)), headers={"Accept": "text/html"})
    body = problem(answer, 406, "not-acceptable")
    assert all(form in body["detail"] for form in ("application/json", *TEXTS))


def test_a_batch_file_is_started_by_srun(client: TestClient) -> None:
    made = store(client)
    headers = {"Accept": "application/x-slurm"}
    assert " mpirun " not in client.get(_path(made), headers=headers).text
    assert client.get(_path(made), headers=headers, params={"launcher": "srun"}).status_code == 200
    refused = client.get(_path(made), headers=headers, params={"launcher": "mpirun"})
    assert places(problem(refused, 422, "invalid-request")) == [("launcher", "contradiction")]
    plan = client.get(_path(made), params={"launcher": "srun"}).json()
    assert plan["tests"][0]["commands"][0]["argv"][0] == "srun"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("nodes", "0"),
        ("nodes", "2049"),
        ("nodes", "1.0"),
        ("nodes", "x"),
        ("directory", "relative"),
        ("directory", ""),
        ("directory", "/a@b"),
        ("directory", "/a\nb"),
        ("directory", "/" + "a" * 512),
        ("storage_label", "a\nb"),
        ("launcher", "ssh"),
        ("url", "ftp://a"),
        ("url", "http://"),
        ("url", "http://user:pass@a"),
        ("url", "http://a/?b"),
        ("url", "http://a/'b"),
        ("url", "http://a b"),
        ("url", "http://a\n"),
        ("url", "http://a/$(b)"),
        ("url", "http://a:70000"),
        ("url", "http://a:0"),
        ("url", "http://[0]"),
        ("url", "http://[127.0.0.1]/a"),
        ("no_such", "1"),
    ],
)
def test_a_parameter_that_is_wrong_is_named(stored_on_sqlite: TestClient, name: str, value: str) -> None:
    made = store(stored_on_sqlite, name=f"wrong {name} {value!r}"[:200])
    answer = stored_on_sqlite.get(_path(made), params={name: value})
    kind = "unsatisfiable" if value == "2049" else "invalid-request"
    assert [place for place, _ in places(problem(answer, 422, kind))] == [name]


@pytest.mark.parametrize(
    "url", ["http://[::1]:8000", "https://host.example/a/b", "http://host.example:1/", "http://10.0.0.1"]
)
def test_results_go_where_the_url_says(stored_on_sqlite: TestClient, url: str) -> None:
    made = store(stored_on_sqlite, name=f"url {url}")
    plan = stored_on_sqlite.get(_path(made), params={"url": url}).json()
    assert plan["url"] == url.rstrip("/")
    for test in plan["tests"]:
        assert test["post"]["argv"][-1].startswith(
            f"{url.rstrip('/')}/v1/scenarios/{made['id']}/benchmark-runs"
        )


@pytest.mark.parametrize(
    "host", ["a'b", "a b", "$(id)", "a/b?c", "user@host", "a:b", "", "[::1", "a;b", "a" * 600]
)
def test_a_host_header_that_is_no_address_asks_for_the_url(
    client: TestClient, application: FastAPI, host: str
) -> None:
    # Without keys the service would answer to its own names only.
    client.headers.update(make_key(application, AccessScope.WRITE))
    made = store(client)
    answer = client.get(_path(made), headers={"Host": host})
    if answer.status_code == 200:  # what was understood as an address is one
        parts = urlsplit(answer.json()["url"])
        assert parts.hostname is not None
        assert parts.hostname.replace(".", "").replace("-", "").isalnum()
    else:
        assert places(problem(answer, 422, "invalid-request")) == [("url", "missing")]
    given = client.get(_path(made), headers={"Host": host}, params={"url": "http://h"})
    assert given.json()["url"] == "http://h"


def test_a_trailing_slash_of_the_directory_is_left_out(client: TestClient) -> None:
    made = store(client)
    for directory, start in (("/mnt/a/", "/mnt/a/stallbudget-"), ("/", "/stallbudget-")):
        plan = client.get(_path(made), params={"directory": directory}).json()
        argv = plan["tests"][0]["commands"][0]["argv"]
        assert argv[argv.index("-o") + 1].startswith(start)


def test_the_same_question_gets_the_same_bytes(client: TestClient) -> None:
    made = store(client)
    for form in ("application/json", *TEXTS):
        first, second = (client.get(_path(made), headers={"Accept": form}).content for _ in range(2))
        assert first == second


def test_a_plan_is_about_the_present_revision(client: TestClient) -> None:
    made = store(client)
    client.put(f"/v1/scenarios/{made['id']}", json={"name": "new", "spec": ASYNC}, headers={"If-Match": "*"})
    plan = client.get(_path(made)).json()
    assert (plan["scenario_revision"], plan["name"]) == (2, "new")
    assert "ior_write_under_read_load" in [test["id"] for test in plan["tests"]]


def test_what_counts_as_full_scale_is_the_services_setting(client: TestClient) -> None:
    made = store(client)
    assert client.get(_path(made), params={"nodes": "1945"}).json()["full_scale"] is False
    assert client.get(_path(made), params={"nodes": "1946"}).json()["full_scale"] is True


def test_a_plan_too_large_to_count_is_refused(client: TestClient) -> None:
    spec = changed(changed(SYNC, "#/model/parameters", 10**14), "#/model/bytes_per_parameter", 64)
    answer = client.get(_path(store(client, spec=spec)))
    assert places(problem(answer, 422, "unsatisfiable")) == [("nodes", "too_large")]


def test_an_unknown_scenario_is_404(client: TestClient) -> None:
    problem(client.get(f"/v1/scenarios/{NOWHERE}/test-plan"), 404, "not-found")
