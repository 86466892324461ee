"""Reading JSON that somebody else wrote: strictly, with a bound on its depth, and with the place of a fault.

`json.loads` takes more than JSON (`NaN`, the same key twice, `1e999` as infinity), and deep nesting ends
it with a RecursionError. Here each of these is a `JsonFault` that names the place.
"""

import json
import math
import re
import sys
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, NoReturn

MAX_DEPTH = 64

_OVERFLOWS = re.compile(r"[eE]\+?[0-9]{3,}|(?<![0-9])[0-9]{200,}")
"""What every number beyond the range of floats has in its text; few others do. Two digits of exponent make 10**99,
so 210 more before the point are needed; the look-behind keeps the search linear."""
_LONGEST_INTEGER = 400
"""Digits of an integer that is certainly beyond the range of floats; Python itself refuses thousands."""


class JsonFault(ValueError):
    """A text that is not acceptable JSON.

    Attributes:
        code: `not_json`, `duplicate_key`, `non_finite_number` or `too_deep`.
        detail: What is wrong and what would be right.
        line: Line of a syntax error, counted from 1.
        pointer: Place of a fault in a text that could be read, as a URI fragment (`#/a/0`).
    """

    def __init__(
        self, code: str, detail: str, *, line: int | None = None, pointer: str | None = None
    ) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.line = line
        self.pointer = pointer


class _Seen(Exception):
    """The quick reader met something that the slow one should locate."""


@dataclass(frozen=True, slots=True)
class _Pairs:
    """An object as it was written, with every key of it."""

    pairs: list[tuple[str, Any]]


@dataclass(frozen=True, slots=True)
class _Constant:
    """A bare `NaN`, `Infinity` or `-Infinity`."""

    name: str


def pointer(*parts: str | int) -> str:
    """Return a JSON Pointer as a URI fragment: `pointer("a", 0)` is `#/a/0`, `pointer()` is `#`."""
    return "#" + "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise _Seen
    return made


def _refuse(_name: str) -> NoReturn:
    raise _Seen


def _integer(digits: str) -> float:
    if len(digits) <= _LONGEST_INTEGER:
        return int(digits)
    return -math.inf if digits.startswith("-") else math.inf


_quick = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_refuse)
_slow = json.JSONDecoder(object_pairs_hook=_Pairs, parse_constant=_Constant, parse_int=_integer)
_long = json.JSONDecoder(parse_int=_integer)


def _repeats(key: str, value: object, before: object, repeatable: Collection[str]) -> bool:
    return key in repeatable and type(value) is type(before) and value == before


def _quick_with_repeats(repeatable: Collection[str]) -> json.JSONDecoder:
    """Return a reader that lets the named keys stand again in an object where their values are equal."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for key, value in pairs:
            if key in made and not _repeats(key, value, made[key], repeatable):
                raise _Seen
            made[key] = value
        return made

    return json.JSONDecoder(object_pairs_hook=once, parse_constant=_refuse)


def loads(text: str, *, finite: bool = True, repeatable: Collection[str] = ()) -> Any:  # noqa: ANN401 - whatever JSON holds
    """Return the value that a JSON text holds.

    Args:
        text: The whole document.
        finite: Refuse a number too large for a float; without it, it is read as infinity (an integer of up to
            thousands of digits as itself), for a caller who checks every number himself and can say more.
        repeatable: Keys that an object may hold again, if with an equal value: a flaw of some tools.

    Raises:
        JsonFault: The text is not JSON, holds a key twice, a number that is not finite, or nests deeper
            than `MAX_DEPTH`.
    """
    if text.count("[") + text.count("{") > MAX_DEPTH:
        _check_depth(text)
    try:
        value = (_quick_with_repeats(repeatable) if repeatable else _quick).decode(text)
    except json.JSONDecodeError as error:
        raise JsonFault(
            "not_json", f"Line {error.lineno}, column {error.colno}: {error.msg}.", line=error.lineno
        ) from None
    except (_Seen, ValueError):  # ValueError: an integer of thousands of digits
        _locate(text, repeatable, finite=finite)
        value = _long.decode(text)
    if _SURROGATE.search(text):
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise JsonFault(
                "not_json", "A string holds half of a surrogate pair (U+D800 to U+DFFF)."
            ) from None
    if finite and _OVERFLOWS.search(text):
        _locate(text, repeatable, finite=finite)
    return value


_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_STRINGS = re.compile(r'"(?:[^"\\]|\\.)*"?', re.DOTALL)
"""The closing quote is optional so that a match never fails: each retry would read an unclosed string again."""


def _check_depth(text: str) -> None:
    depth = 0
    for bracket in re.findall(r"[\[\]{}]", _STRINGS.sub("", text)):
        depth += 1 if bracket in "[{" else -1
        if depth > MAX_DEPTH:
            raise JsonFault("too_deep", f"The document nests deeper than {MAX_DEPTH} levels.")


def _locate(text: str, repeatable: Collection[str], *, finite: bool) -> None:
    """Raise the first fault that the quick reader cannot place, if there is one."""
    try:
        root = _slow.decode(text)
    except json.JSONDecodeError as error:
        raise JsonFault(
            "not_json", f"Line {error.lineno}, column {error.colno}: {error.msg}.", line=error.lineno
        ) from None
    waiting: list[tuple[tuple[str | int, ...], Any]] = [((), root)]
    while waiting:
        place, value = waiting.pop()
        match value:
            case _Constant(name):
                raise JsonFault(
                    "non_finite_number",
                    f"{name} is not a JSON number; leave out what is unknown.",
                    pointer=pointer(*place),
                )
            case float() | int() if finite and not abs(value) <= sys.float_info.max:
                raise JsonFault(
                    "non_finite_number", "The number is too large to be one.", pointer=pointer(*place)
                )
            case _Pairs(pairs):
                seen: dict[str, Any] = {}
                for key, item in pairs:
                    if key in seen and not _repeats(key, item, seen[key], repeatable):
                        raise JsonFault(
                            "duplicate_key",
                            f"The key {key[:80]!r} stands twice in one object.",
                            pointer=pointer(*place, key),
                        )
                    seen[key] = item
                waiting.extend(((*place, key), item) for key, item in reversed(pairs))
            case list():
                waiting.extend(((*place, at), item) for at, item in reversed(list(enumerate(value))))
            case _:
                pass
