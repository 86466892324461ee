"""/metrics: what was counted, in Prometheus's form, for those who may read it."""

import pytest
from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

from service.api.metrics import KINDS, Metrics, may_read
from service.app import create_app
from service.settings import MetricsMode, Settings
from tests.api.asking import IOR_JSON, IOR_TEXT, LOCAL, NOWHERE, SYNC, dcp, store, stored_run, upload
from tests.api.exchanges import scope_of

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def _samples(client: TestClient) -> Samples:
    answer = client.get("/metrics")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/plain; version=")
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def _of(samples: Samples, name: str, **labels: str) -> float:
    return samples.get((name, tuple(sorted(labels.items()))), 0)


@pytest.fixture
def scraped(client: TestClient) -> TestClient:
    """Return a client of this machine, which may read the metrics."""
    return TestClient(client.app, base_url=LOCAL, client=("127.0.0.1", 1), raise_server_exceptions=False)


def test_requests_are_counted_by_route_and_never_by_path(scraped: TestClient) -> None:
    for path in (f"/v1/scenarios/{NOWHERE}", f"/v1/scenarios/{NOWHERE[:-1]}1", "/a", "/b"):
        scraped.get(path)
    scraped.head("/livez")
    scraped.request("BREW", "/c")
    samples = _samples(scraped)
    name = "stallbudget_http_requests_total"
    assert _of(samples, name, method="GET", route="/v1/scenarios/{scenario_id}", status="404") == 2
    assert _of(samples, name, method="GET", route="unmatched", status="404") == 2
    assert _of(samples, name, method="HEAD", route="/livez", status="200") == 1
    assert _of(samples, name, method="other", route="unmatched", status="404") == 1
    assert NOWHERE not in scraped.get("/metrics").text


def test_a_latency_is_in_its_bucket() -> None:
    counts = Metrics()
    for seconds in (0.0005, 0.001, 0.0011, 500):
        counts.count_request(method="GET", route="/a", status=200, seconds=seconds)
    (durations,) = counts._durations.values()
    cumulative = dict(durations.cumulative())
    assert (cumulative["0.001"], cumulative["0.0025"], cumulative["120.0"], cumulative["+Inf"]) == (
        2,
        3,
        3,
        4,
    )
    assert durations.sum_seconds == pytest.approx(500.0026)


def test_latency_is_shown_as_a_histogram(scraped: TestClient) -> None:
    scraped.post("/v1/sizings", json=SYNC)
    samples = _samples(scraped)
    name = "stallbudget_http_request_duration_seconds"
    labels = {"method": "POST", "route": "/v1/sizings"}
    assert _of(samples, f"{name}_count", **labels) == 1
    assert _of(samples, f"{name}_bucket", le="+Inf", **labels) == 1
    assert 0 < _of(samples, f"{name}_sum", **labels) < 60


def test_uploads_are_counted_by_format_and_outcome(scraped: TestClient) -> None:
    made = store(scraped)
    stored_run(scraped, made, IOR_JSON)
    for document in (IOR_JSON, b"", b"hello", IOR_TEXT[: len(IOR_TEXT) // 4], dcp("one")):
        upload(scraped, made, document)
    upload(scraped, made, dcp("one", label="other"))
    upload(scraped, {"id": NOWHERE}, IOR_JSON)
    samples = _samples(scraped)
    name = "stallbudget_uploads_total"
    assert _of(samples, name, format="ior-json", outcome="stored") == 1
    assert _of(samples, name, format="ior-json", outcome="repeated") == 1
    assert _of(samples, name, format="dcp-timing", outcome="stored") == 1
    assert _of(samples, name, format="dcp-timing", outcome="run_id_taken") == 1
    assert _of(samples, name, format="unknown", outcome="empty") == 1
    assert _of(samples, name, format="unknown", outcome="unknown_format") == 1
    assert _of(samples, name, format="unknown", outcome="not_found") == 1
    assert sum(value for (each, _), value in samples.items() if each == name) == 8


def test_the_pool_is_shown(scraped: TestClient) -> None:
    scraped.get("/v1/scenarios")
    samples = _samples(scraped)
    assert _of(samples, "stallbudget_database_pool_size") == 10
    assert _of(samples, "stallbudget_database_connections", state="in_use") == 0
    assert _of(samples, "stallbudget_database_connections", state="idle") >= 1
    assert _of(samples, "stallbudget_database_pool_waits_total") == 0


def test_the_build_and_the_process_are_shown(scraped: TestClient) -> None:
    text = scraped.get("/metrics").text
    assert 'stallbudget_build_info{python="3.' in text
    assert "process_resident_memory_bytes" in text


def test_what_was_refused_for_its_rate_is_counted() -> None:
    app = create_app(Settings(database_url="sqlite:///unused.db", computing_per_minute=1))
    with TestClient(app, base_url=LOCAL, client=("127.0.0.1", 1)) as client:
        for _ in range(3):
            client.post("/v1/sizings", json=SYNC)
        assert _of(_samples(client), "stallbudget_rate_limited_total", budget="computing", by="address") == 2


def test_openmetrics_is_spoken_where_it_is_asked_for(scraped: TestClient) -> None:
    answer = scraped.get("/metrics", headers={"Accept": "application/openmetrics-text;version=1.0.0"})
    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    assert answer.text.endswith("# EOF\n")


def test_a_label_from_elsewhere_has_a_bounded_number_of_values() -> None:
    counts = Metrics()
    for n in range(10 * KINDS):
        counts.count_upload(format="ior-text", outcome=f"code_{n}")
    assert len(counts._uploads) == KINDS + 1
    assert counts._uploads["other", "other"] == 9 * KINDS


@pytest.mark.parametrize(
    ("address", "headers", "modes"),
    [
        ("127.0.0.1", [], {"loopback", "private", "on"}),
        ("::1", [], {"loopback", "private", "on"}),
        ("::ffff:127.0.0.1", [], {"loopback", "private", "on"}),
        ("10.1.2.3", [], {"private", "on"}),
        ("fd00::1", [], {"private", "on"}),
        ("8.8.8.8", [], {"on"}),
        ("2001:4860::1", [], {"on"}),
        ("testclient", [], {"on"}),
        ("", [], {"on"}),
        ("127.0.0.1", [(b"x-forwarded-for", b"127.0.0.1")], {"on"}),
        ("10.1.2.3", [(b"forwarded", b"for=10.0.0.1")], {"on"}),
        ("10.1.2.3", [(b"via", b"1.1 proxy")], {"on"}),
    ],
)
def test_who_may_read_them(address: str, headers: list[tuple[bytes, bytes]], modes: set[str]) -> None:
    scope = scope_of("GET", "/metrics", *headers, client=address)
    assert {mode.value for mode in MetricsMode if may_read(mode, scope)} == modes


@pytest.mark.parametrize("mode", list(MetricsMode))
def test_for_those_who_may_not_there_is_nothing(mode: MetricsMode) -> None:
    app = create_app(Settings(database_url="sqlite:///unused.db", metrics=mode))
    with TestClient(app, base_url=LOCAL, client=("8.8.8.8", 1)) as client:
        assert client.get("/metrics").status_code == (200 if mode is MetricsMode.ON else 404)
