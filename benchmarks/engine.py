"""Microseconds of one sizing, without HTTP."""

import time
from collections.abc import Callable
from statistics import median

from service.api.examples import GIVEN_STORAGE, LLAMA_405B_ASYNC, LLAMA_405B_SYNC
from service.sizing.size import size
from service.sizing.spec import ScenarioSpec

CASES = {
    "sync": LLAMA_405B_SYNC,
    "async": LLAMA_405B_ASYNC,
    "given storage": GIVEN_STORAGE,
}


def microseconds(*, rounds: int, calls: int) -> dict[str, tuple[float, float]]:
    """Return for each case the time of a sizing, and of an explained one: medians over rounds. [µs]"""
    specs = {name: ScenarioSpec.model_validate(body) for name, body in CASES.items()}
    found: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in specs}
    for _ in range(rounds):
        for name, spec in specs.items():
            for place, explained in enumerate((False, True)):
                found[name][place].append(_time(lambda s=spec, e=explained: size(s, explained=e), calls))  # type: ignore[misc]
    return {name: (median(bare), median(explained)) for name, (bare, explained) in found.items()}


def _time(call: Callable[[], object], calls: int) -> float:
    started = time.process_time()
    for _ in range(calls):
        call()
    return (time.process_time() - started) / calls * 1e6
