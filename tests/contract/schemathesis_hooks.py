"""What Schemathesis is told of this service that its OpenAPI document cannot say."""

import json
from itertools import count
from typing import Any

import schemathesis
from hypothesis import strategies
from hypothesis.strategies import SearchStrategy
from schemathesis.core.failures import AcceptedNegativeData
from schemathesis.openapi.checks import UseAfterFree

from tests.faults.asking import document, scenario_body

_asked = count(1)


@schemathesis.hook
def filter_failure(
    _context: schemathesis.HookContext,
    failure: Exception,
    case: schemathesis.Case,
    _response: schemathesis.Response,
) -> bool:
    """Let null be taken, which in requests means the same as absent; and keys be read when they are revoked."""
    if isinstance(failure, AcceptedNegativeData):
        return not _has_null(case.body)
    return not (isinstance(failure, UseAfterFree) and case.operation.path.startswith("/v1/api-keys"))


@schemathesis.hook
def before_call(
    _context: schemathesis.HookContext, case: schemathesis.Case, _options: dict[str, Any]
) -> None:
    """Send from another address each time: one that sends many wrong keys has to wait, whatever it sends then."""
    number = next(_asked)
    case.headers["X-Forwarded-For"] = f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"


@schemathesis.hook("before_generate_body").apply_to(operation_id="create_benchmark_run")
def documents(_context: schemathesis.HookContext, strategy: SearchStrategy[object]) -> SearchStrategy[object]:
    """Post documents of a tool beside other texts: nobody hits upon one by chance."""
    return strategies.integers(0, 20).map(document) | strategy


@schemathesis.hook("before_generate_body").apply_to(operation_id=["create_scenario", "replace_scenario"])
def scenarios(
    _context: schemathesis.HookContext, _strategy: SearchStrategy[object]
) -> SearchStrategy[object]:
    """Post scenarios that have a sizing; what is wrong with others, create_sizing tells."""
    return strategies.integers(0, 10_000).map(lambda number: json.loads(scenario_body(f"scenario {number}")))


def _has_null(value: object) -> bool:
    if isinstance(value, dict):
        return any(_has_null(item) for item in value.values())
    if isinstance(value, list):
        return any(_has_null(item) for item in value)
    return value is None
