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
MAX_PARTS = 4_000_000
"""Objects and lists: an empty one is two bytes of text, and two dozen times that when it is read."""

_SHAPE = bytes(
    ord("0")
    if chr(code).isdigit()
    else ord("e")
    if chr(code) in "eE"
    else ord("+")
    if chr(code) == "+"
    else 0
    for code in range(128)
) + bytes(128)
_LARGE = (b"0e000", b"0e+000", b"0" * 200)
"""How every number beyond the range of floats looks in `_SHAPE`, and little else. Two digits of exponent make
10**99, so 210 more before the point are needed."""
_OVERFLOWS = re.compile(r"(?:^|[\s:,\[])-?(?:[0-9]{200}|[0-9]++(?:\.[0-9]++)?[eE]\+?[0-9]{3})", re.MULTILINE)
"""The same where a number may begin: not in a digest, which a shape may be of."""
_LONGEST_INTEGER = 400
"""Digits of an integer that is certainly beyond the range of floats; Python itself refuses thousands."""


class JsonFault(ValueError):
    """A text that is not acceptable JSON.

    Attributes:
        code: `not_json`, `duplicate_key`, `non_finite_number`, `too_deep` or `too_many_parts`.
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
            than `MAX_DEPTH`, or has more than `MAX_PARTS` objects and lists.
    """
    parts = text.count("[") + text.count("{")
    if parts > MAX_DEPTH:
        _check_depth(text)
    if parts > MAX_PARTS:
        raise JsonFault("too_many_parts", f"The document holds more than {MAX_PARTS} objects and lists.")
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
    if finite and _may_overflow(text):
        _locate(text, repeatable, finite=finite)
    return value


def _may_overflow(text: str) -> bool:
    shape = text.encode(errors="surrogatepass").translate(_SHAPE)
    return any(large in shape for large in _LARGE) and _OVERFLOWS.search(text) is not None


_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_STRINGS = re.compile(r'"(?:[^"\\]|\\.)*"?', re.DOTALL)
"""The closing quote is optional so that a match never fails: each retry would read an unclosed string again."""


_ALIKE = bytes.maketrans(b"{}", b"[]")
_NO_STRUCTURE = bytes(code for code in range(256) if code not in b'[]{}"')


def _check_depth(text: str) -> None:
    """Raise `too_deep` for a text that nests deeper than `MAX_DEPTH`."""
    # Brackets and quotes alone, without escaped quotes. Where quotes stand in pairs, no bracket is in a string:
    # before the first that is, their number would be odd.
    shape = text.encode(errors="surrogatepass")
    if b"\\" in shape:
        shape = shape.replace(b"\\\\", b"").replace(b'\\"', b"")
    shape = shape.translate(_ALIKE, _NO_STRUCTURE).replace(b'""', b"")
    if b'"' not in shape:
        for _ in range(MAX_DEPTH):  # each turn takes the innermost level off
            if not shape:
                return
            shape = shape.replace(b"[]", b"")
        if not shape:
            return
    depth = 0
    for bracket in re.finditer(r"[\[\]{}]", _STRINGS.sub("", text)):
        depth += 1 if bracket[0] in "[{" else -1
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
