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
    case: schemathesis.Case[Any],
    _response: schemathesis.Response,
) -> bool:
    """Let null be taken, which in requests means the same as absent; and keys be read when they are revoked."""
    if isinstance(failure, AcceptedNegativeData):
        return not _has_null(case.body)
    return not (isinstance(failure, UseAfterFree) and case.operation.path.startswith("/v1/api-keys"))


@schemathesis.hook
def before_call(
    _context: schemathesis.HookContext, case: schemathesis.Case[Any], _options: dict[str, Any]
) -> None:
    """Send from another address each time: one that sends many wrong keys has to wait, whatever it sends then."""
    number = next(_asked)
    case.headers["X-Forwarded-For"] = f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"


@schemathesis.hook
def before_generate_body(
    context: schemathesis.HookContext, strategy: SearchStrategy[object]
) -> SearchStrategy[object]:
    """Post documents of a tool beside other texts, and scenarios that have a sizing: nobody hits upon one by chance.

    What is wrong with other scenarios, create_sizing tells.
    """
    operation = context.operation.definition.raw["operationId"] if context.operation else None
    numbers = strategies.integers(0, 50)
    if operation == "create_benchmark_run":
        return numbers.map(document) | strategy
    if operation in ("create_scenario", "replace_scenario"):
        return numbers.map(lambda number: json.loads(scenario_body(f"scenario {number}")))
    return strategy


def _has_null(value: object) -> bool:
    if isinstance(value, dict):
        return any(_has_null(item) for item in value.values())
    if isinstance(value, list):
        return any(_has_null(item) for item in value)
    return value is None
