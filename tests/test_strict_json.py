"""Reading foreign JSON: what is refused, where the fault is said to be, and what it costs to find out."""

import json
import math
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service import strict_json
from service.strict_json import MAX_DEPTH, JsonFault


def _fault(text: str, *, finite: bool = True) -> JsonFault:
    with pytest.raises(JsonFault) as caught:
        strict_json.loads(text, finite=finite)
    return caught.value


def test_plain_json_reads_as_the_standard_library_reads_it() -> None:
    text = '{"a": [1, 2.5, -3e-4, true, null, "\\u00e9\\n"], "": {"b": []}}'
    assert strict_json.loads(text) == json.loads(text)


@settings(derandomize=True, deadline=None, max_examples=100)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(10**300), 10**300) | st.floats(allow_nan=False) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=10,
    )
)
def test_whatever_json_writes_is_read_back(value: object) -> None:
    try:
        text = json.dumps(value, allow_nan=False)
    except ValueError:  # an infinity, which JSON has not
        assert _fault(json.dumps(value)).code == "non_finite_number"
    else:
        assert strict_json.loads(text) == value


@pytest.mark.parametrize(
    ("text", "pointer"),
    [
        ('{"a": 1, "a": 1}', "#/a"),
        ('{"a": [0, {"b": 1, "c": 2, "b": 3}]}', "#/a/1/b"),
        ('[{"x/y~z": 1, "x/y~z": 2}]', "#/0/x~1y~0z"),
        ('{"": 1, "": 2}', "#/"),
        ('{"a": 1, "\\u0061": 2}', "#/a"),
    ],
)
def test_a_key_that_stands_twice_is_named(text: str, pointer: str) -> None:
    fault = _fault(text)
    assert (fault.code, fault.pointer) == ("duplicate_key", pointer)


def test_a_key_that_may_repeat_must_say_the_same() -> None:
    same = '{"a": [1], "b": 2, "a": [1]}'
    assert strict_json.loads(same, repeatable={"a"}) == {"a": [1], "b": 2}
    for text, pointer in (
        ('{"a": 1, "a": 1.0}', "#/a"),
        ('{"a": 1, "a": 2}', "#/a"),
        ('{"b": 1, "b": 1}', "#/b"),
    ):
        with pytest.raises(JsonFault) as caught:
            strict_json.loads(text, repeatable={"a"})
        assert (caught.value.code, caught.value.pointer) == ("duplicate_key", pointer)


@pytest.mark.parametrize("finite", [True, False])
@pytest.mark.parametrize("name", ["NaN", "Infinity", "-Infinity"])
def test_names_of_numbers_that_are_none_are_refused_in_their_place(name: str, finite: bool) -> None:
    fault = _fault(f'{{"a": [1, {name}]}}', finite=finite)
    assert (fault.code, fault.pointer) == ("non_finite_number", "#/a/1")
    assert name in fault.detail


@pytest.mark.parametrize(
    "number",
    [
        "1e999",
        "-1e999",
        "1E+400",
        "1.5e309",
        "0.1e0000310",
        "9" * 299 + "e99",
        "1" + "0" * 210 + ".5e99",
        "9" * 310,
        "-" + "9" * 400,
        "9" * 401,
        "9" * 5000,
        "-" + "9" * 100_000,
    ],
)
def test_a_number_beyond_floats_is_refused_in_its_place(number: str) -> None:
    fault = _fault(f'{{"a": 1, "b": [{number}]}}')
    assert (fault.code, fault.pointer) == ("non_finite_number", "#/b/0")


@pytest.mark.parametrize(
    "number", ["1e308", "-1.7976931348623157e308", "9" * 308, "1e-999", "0." + "3" * 400]
)
def test_a_number_within_floats_is_read_however_it_is_written(number: str) -> None:
    assert math.isfinite(strict_json.loads(f"[{number}]")[0])


def test_a_caller_who_checks_numbers_himself_gets_infinity() -> None:
    assert strict_json.loads('{"a": -1e999}', finite=False) == {"a": -math.inf}
    digits = "9" * 5000
    assert strict_json.loads(f'{{"a": [{digits}, -{digits}, 7]}}', finite=False) == {
        "a": [math.inf, -math.inf, 7]
    }


def test_a_caller_who_checks_numbers_himself_is_told_of_what_else_is_wrong() -> None:
    for text, pointer in (
        ('{"a": 1e999, "b": NaN}', "#/b"),
        ('{"a": ' + "9" * 5000 + ', "b": 1, "b": 2}', "#/b"),
    ):
        assert _fault(text, finite=False).pointer == pointer


def test_an_integer_of_thousands_of_digits_beside_another_fault_is_still_a_json_fault() -> None:
    fault = _fault('{"a": NaN, "b": ' + "9" * 5000 + "}")
    assert fault.pointer == "#/a"


@pytest.mark.parametrize("pair", ["[]", "{}"])
def test_nesting_is_bounded(pair: str) -> None:
    def nested(levels: int) -> str:
        opened = "[" if pair == "[]" else '{"a":'
        return opened * levels + "1" + pair[1] * levels

    strict_json.loads(nested(MAX_DEPTH))
    assert _fault(nested(MAX_DEPTH + 1)).code == "too_deep"
    assert _fault(nested(100_000)).code == "too_deep"


def test_unclosed_nesting_is_too_deep_before_it_is_wrong() -> None:
    assert _fault("[" * 1_000_000).code == "too_deep"


def test_brackets_within_strings_and_beside_each_other_do_not_nest() -> None:
    text = json.dumps(["[" * 1000, '\\"[[[{{{' * 100, [[] for _ in range(1000)]])
    assert strict_json.loads(text) == json.loads(text)


@pytest.mark.parametrize(
    "text",
    ['["\\ud800"]', '["\\uDFFF"]', '{"\\udc00": 1}', '["\\ud83dx"]', '["\\ude00\\ud83d"]'],
)
def test_half_a_surrogate_pair_is_refused(text: str) -> None:
    fault = _fault(text)
    assert fault.code == "not_json"
    assert "surrogate" in fault.detail


def test_a_whole_surrogate_pair_is_a_character() -> None:
    assert strict_json.loads('["\\ud83d\\ude00", "\\\\ud800"]') == ["\U0001f600", "\\ud800"]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", 1),
        ("{", 1),
        ('{"a": 1}\n{', 2),
        ("\ufeff{}", 1),
        ('{"a":\n\n tru}', 3),
        ('["\t"]', 1),
        ("[1,]", 1),
    ],
)
def test_what_is_not_json_is_refused_with_its_line(text: str, line: int) -> None:
    fault = _fault(text)
    assert (fault.code, fault.line, fault.pointer) == ("not_json", line, None)


def test_a_syntax_error_after_a_fault_that_has_a_place_is_still_a_syntax_error() -> None:
    fault = _fault('{"a": 1, "a": 2,\n"b": }')
    assert (fault.code, fault.line) == ("not_json", 2)


@pytest.mark.parametrize(
    ("parts", "pointer"),
    [((), "#"), (("a", 0), "#/a/0"), (("a/b", "c~d"), "#/a~1b/c~0d"), (("~1",), "#/~01"), (("",), "#/")],
)
def test_pointers_escape_slash_and_tilde(parts: tuple[str | int, ...], pointer: str) -> None:
    assert strict_json.pointer(*parts) == pointer


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("[" * 65 + '"' + '\\"' * 200_000, id="an unclosed string of escaped quotes"),
        pytest.param("[" * 65 + '"' + "\\" * 400_001, id="an unclosed string of backslashes"),
        pytest.param("[" + ",".join(["9" * 199] * 5_000) + ",1e", id="long runs of digits"),
        pytest.param("[" + "9" * 1_000_000 + "]", id="one integer of a million digits"),
        pytest.param("{" + ",".join(f'"{at}":NaN' for at in range(100_000)) + "}", id="faults all over"),
        pytest.param("[" + "{}," * 200_000 + '{"a":1,"a":2}]', id="a fault after many objects"),
        pytest.param('["' + "\\ud83d\\ude00" * 50_000 + '\\ud83d"]', id="surrogates all over"),
        pytest.param("]" * 500_000 + "[" * 500_000, id="brackets the wrong way round"),
    ],
)
def test_hostile_text_costs_no_more_than_its_length(text: str) -> None:
    started = time.process_time()
    _fault(text)
    # Linear work takes a fraction of a second; work that grows with the square would take minutes.
    assert time.process_time() - started < 5.0
