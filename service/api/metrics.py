"""What the process has done, counted, and shown at `/metrics` in the form of Prometheus.

A request costs a few entries in dicts; the library that writes them out is loaded when somebody asks. Every label has
values of which there is a bounded number: routes by their template, never a path, an id or a caller.
"""

import platform
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

from service import __version__
from service.api.problems import KIND_OF_ERROR, Refused
from service.api.rates import RateLimits
from service.errors import RunIdTaken, StallbudgetError, UnreadableDocument
from service.settings import MetricsMode
from service.store.database import Database

if TYPE_CHECKING:
    from prometheus_client.core import Metric

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0)
"""The upper ends of the latency histogram's buckets. [s]"""
UNMATCHED = "unmatched"
"""The route of what no route matches."""
GAVE_UP = "gave_up"
"""The status of a request whose sender left before it was answered."""
UNKNOWN = "unknown"
"""The format of what was refused before it was recognised."""
OTHER = "other"
KINDS = 200
"""How many different values a label has that comes from elsewhere; any more are `other`."""

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_FORWARDED = frozenset({b"forwarded", b"x-forwarded-for", b"x-forwarded-host", b"x-real-ip", b"via"})


class Metrics:
    """The counts of one service."""

    def __init__(self) -> None:
        self._requests: Counter[tuple[str, str, str]] = Counter()
        self._durations: dict[tuple[str, str], _Durations] = {}
        self._uploads: Counter[tuple[str, str]] = Counter()
        self._rate_limited: Counter[tuple[str, str]] = Counter()
        self._cut_off: Counter[str] = Counter()
        self.in_flight = 0
        """How many requests are being worked on."""

    def count_request(self, *, method: str, route: str, status: int | None, seconds: float) -> None:
        """Count a request that has ended; a status of None means that nobody was left to be answered."""
        method = method if method in _METHODS else OTHER
        self._requests[method, route, GAVE_UP if status is None else str(status)] += 1
        place = (method, route)
        durations = self._durations.get(place)
        if durations is None:
            durations = self._durations[place] = _Durations()
        durations.count(seconds)

    def count_upload(self, *, format: str, outcome: str) -> None:
        """Count a document that came in, under its format and `stored`, `repeated` or the code of its refusal."""
        place = (format, outcome)
        self._uploads[place if place in self._uploads or len(self._uploads) < KINDS else (OTHER, OTHER)] += 1

    def count_refused_upload(self, error: StallbudgetError) -> None:
        """Count a document that was refused."""
        if isinstance(error, UnreadableDocument):
            self.count_upload(format=error.format or UNKNOWN, outcome=error.code)
            return
        kind = error.kind if isinstance(error, Refused) else KIND_OF_ERROR[type(error)]
        self.count_upload(
            format="dcp-timing" if isinstance(error, RunIdTaken) else UNKNOWN, outcome=kind.replace("-", "_")
        )

    def count_rate_limited(self, *, budget: str, by: str) -> None:
        """Count a request that came too soon, by the budget and by whether a `key` or an `address` had it."""
        self._rate_limited[budget, by] += 1

    def count_cut_off(self, reason: str) -> None:
        """Count a request or a connection that was ended, by the reason."""
        self._cut_off[reason] += 1

    def collected(self, *, database: Database, rates: RateLimits) -> Iterator["Metric"]:
        """Yield every count, as the library for Prometheus has them."""
        from prometheus_client.core import (
            CounterMetricFamily,
            GaugeMetricFamily,
            HistogramMetricFamily,
            InfoMetricFamily,
        )

        def counter(name: str, meaning: str, labels: Iterable[str], counts: Mapping[Any, float]) -> "Metric":
            family = CounterMetricFamily(name, meaning, labels=list(labels))
            for values, count in sorted(counts.items()):
                family.add_metric([values] if isinstance(values, str) else list(values), count)
            return family

        info = InfoMetricFamily("stallbudget_build", "What is running.")
        info.add_metric([], {"version": __version__, "python": platform.python_version()})
        yield info
        yield counter("stallbudget_http_requests", "Requests.", ("method", "route", "status"), self._requests)
        durations = HistogramMetricFamily(
            "stallbudget_http_request_duration_seconds",
            "From the request's head to the end of its answer.",
            labels=["method", "route"],
        )
        for place, counts in sorted(self._durations.items()):
            durations.add_metric(list(place), counts.cumulative(), counts.sum_seconds)
        yield durations
        yield GaugeMetricFamily(
            "stallbudget_http_requests_in_flight", "Requests that are being worked on.", value=self.in_flight
        )
        yield counter(
            "stallbudget_uploads",
            "Documents of benchmark runs: stored, repeated, or the code of their refusal.",
            ("format", "outcome"),
            self._uploads,
        )
        yield counter(
            "stallbudget_rate_limited",
            "Requests that came too soon, by whose budget that was.",
            ("budget", "by"),
            self._rate_limited,
        )
        yield CounterMetricFamily(
            "stallbudget_rate_limits_forgotten",
            "Callers who began with a whole budget again, since there were too many to remember.",
            value=rates.forgotten,
        )
        yield counter(
            "stallbudget_cut_off",
            "Requests and connections that were ended because of a limit.",
            ("reason",),
            self._cut_off,
        )
        pool = database.pool_state()
        connections = GaugeMetricFamily(
            "stallbudget_database_connections", "Connections of the pool.", labels=["state"]
        )
        connections.add_metric(["in_use"], pool.in_use)
        connections.add_metric(["idle"], pool.idle)
        yield connections
        yield GaugeMetricFamily(
            "stallbudget_database_pool_size", "How many connections there may be.", value=pool.size
        )
        yield CounterMetricFamily(
            "stallbudget_database_pool_waits",
            "Transactions that found every connection in use and waited.",
            value=pool.waits,
        )

    def exposition(self, *, accept: str, database: Database, rates: RateLimits) -> tuple[bytes, str]:
        """Return the page of the counts, and its content type, in the form that the Accept header asks for."""
        from prometheus_client import CollectorRegistry, ProcessCollector
        from prometheus_client.exposition import choose_encoder
        from prometheus_client.registry import Collector

        class Counts(Collector):
            def collect(_self) -> Iterator["Metric"]:  # noqa: N805 - self is the metrics
                return self.collected(database=database, rates=rates)

        registry = CollectorRegistry(auto_describe=False)
        registry.register(Counts())
        ProcessCollector(registry=registry)
        encode, content_type = choose_encoder(accept)
        return encode(registry), content_type


class _Durations:
    """A histogram."""

    __slots__ = ("_counts", "sum_seconds")

    def __init__(self) -> None:
        self._counts = [0] * (len(BUCKETS) + 1)
        self.sum_seconds = 0.0

    def count(self, seconds: float) -> None:
        self._counts[bisect_left(BUCKETS, seconds)] += 1
        self.sum_seconds += seconds

    def cumulative(self) -> list[tuple[str, float]]:
        """Return how many took at most so long, for the end of each bucket."""
        total, made = 0, []
        for end, count in zip((*map(str, BUCKETS), "+Inf"), self._counts, strict=True):
            total += count
            made.append((end, float(total)))
        return made


def may_read(mode: MetricsMode, scope: Mapping[str, Any]) -> bool:
    """Return whether a request for `/metrics` is answered.

    What a proxy has handed on is so only where everybody may read: the proxy's address says nothing of who asks.
    """
    if mode in (MetricsMode.ON, MetricsMode.OFF):
        return mode is MetricsMode.ON
    if any(name in _FORWARDED for name, _ in scope["headers"]):
        return False
    client = scope.get("client")
    try:
        address = ip_address(client[0] if client else "")
    except ValueError:
        return False
    address = getattr(address, "ipv4_mapped", None) or address
    return address.is_loopback or (mode is MetricsMode.PRIVATE and address.is_private)
