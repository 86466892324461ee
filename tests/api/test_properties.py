"""Whatever is sent, the service answers: random values, and good bodies that were changed at random."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from service.api.examples import QUESTIONS, SPECS
from tests.api.asking import DCP, IOR_CSV, IOR_JSON, IOR_TEXT, PROBLEM, nulls, store

FEW = settings(
    derandomize=True,
    deadline=None,
    max_examples=150,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

NUMBERS = st.one_of(
    st.integers(-3, 20),
    st.integers(),
    st.integers(min_value=0, max_value=10**17),
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(min_value=1e-6, max_value=1e7),
    st.sampled_from([0, 1, -1, 2**31, 2**53, 2**63, 10**30, 10**308, 1e-300, 1e300, 0.99, 1e7, 1e-6]),
)
WORDS = st.one_of(
    st.text(max_size=10), st.sampled_from(["sync", "async", "fixed", "young", "daly", "exact", "llama-3-70b"])
)
LEAVES = st.one_of(st.none(), st.booleans(), NUMBERS, WORDS)
BLOCKS = [block for each in SPECS.values() for block in each["value"].values()]
FIELDS = sorted(
    {name for block in BLOCKS for item in (block if isinstance(block, list) else [block]) for name in item}
)
KEYS = st.one_of(st.text(max_size=5), st.sampled_from([*FIELDS, "mtbf_hours", "shards", "name", "spec"]))
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=8
)


def _places(value: Any, at: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:  # noqa: ANN401
    found = [at] if at else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        found += _places(item, (*at, key))
    return found


@st.composite
def mutated(draw: st.DrawFn, bodies: list[Any], replacements: st.SearchStrategy[Any]) -> Any:  # noqa: ANN401
    """Draw a good body with a few places changed, taken out, moved or doubled."""
    body = json.loads(json.dumps(draw(st.sampled_from(bodies))))
    for _ in range(draw(st.integers(1, 3))):
        places = _places(body)
        if not places:
            break
        *path, last = draw(st.sampled_from(places))
        holder = body
        for part in path:
            holder = holder[part]
        match draw(st.sampled_from(["replace", "replace", "replace", "remove", "rename", "swap"])):
            case "replace":
                holder[last] = draw(replacements)
            case "remove":
                del holder[last]
            case "rename" if isinstance(holder, dict):
                holder[draw(KEYS)] = holder.pop(last)
            case "swap" if isinstance(holder, dict):
                other = draw(st.sampled_from(sorted(holder)))
                holder[last], holder[other] = holder[other], holder[last]
    return body


def _is_an_answer(answer: Any, good: set[int]) -> None:  # noqa: ANN401
    assert answer.status_code in good | {400, 409, 422}, answer.text
    body = answer.json()
    assert nulls(body) == []
    if answer.status_code not in good:
        assert answer.headers["content-type"] == PROBLEM
        assert body["errors"] or answer.status_code == 409


@FEW
@given(VALUES)
@example({"model": {"parameters": 10**400}})
def test_any_json_gets_an_answer(stateless: TestClient, value: object) -> None:
    _is_an_answer(stateless.post("/v1/sizings", content=json.dumps(value)), {200})


@FEW
@given(st.binary(max_size=60))
def test_any_bytes_get_an_answer(stateless: TestClient, body: bytes) -> None:
    _is_an_answer(stateless.post("/v1/sizings", content=body), set())


@FEW
@given(mutated([each["value"] for each in SPECS.values()], VALUES))
def test_a_good_spec_changed_at_random_gets_an_answer(stateless: TestClient, spec: object) -> None:
    answer = stateless.post("/v1/sizings?explain=true", content=json.dumps(spec))
    _is_an_answer(answer, {200})


@FEW
@given(mutated([each["value"] for each in SPECS.values()], NUMBERS))
def test_a_good_spec_with_other_numbers_gets_an_answer_without_infinities(
    stateless: TestClient, spec: object
) -> None:
    answer = stateless.post("/v1/sizings?explain=true", content=json.dumps(spec))
    _is_an_answer(answer, {200})
    assert "Infinity" not in answer.text
    assert "NaN" not in answer.text


@FEW
@given(mutated([each["value"] for each in QUESTIONS.values()], NUMBERS | WORDS))
def test_a_good_question_changed_at_random_gets_an_answer_without_infinities(
    stateless: TestClient, question: object
) -> None:
    answer = stateless.post("/v1/solutions?explain=true", content=json.dumps(question))
    _is_an_answer(answer, {200})
    assert "Infinity" not in answer.text
    assert "NaN" not in answer.text


@pytest.fixture(scope="module")
def scenario(stored_on_both: TestClient) -> dict[str, Any]:
    return store(stored_on_both, "properties")


def _post_and_judge(client: TestClient, scenario: dict[str, Any], document: bytes) -> None:
    """Post a document; where it is accepted, read, judge and delete its run."""
    place = f"/v1/scenarios/{scenario['id']}"
    answer = client.post(f"{place}/benchmark-runs", content=document)
    _is_an_answer(answer, {200, 201})
    if answer.status_code < 300:
        run = client.get(answer.headers["location"])
        assert run.content == answer.content
        report = client.get(f"{place}/gap-report")
        _is_an_answer(report, {200})
        assert report.json()["runs_considered"] == 1
        assert client.delete(answer.headers["location"], headers={"If-Match": "*"}).status_code == 204


@FEW
@given(mutated([json.loads(DCP), json.loads(IOR_JSON)], VALUES))
def test_a_good_document_changed_at_random_gets_an_answer_and_a_judgement(
    stored_on_both: TestClient, scenario: dict[str, Any], document: object
) -> None:
    _post_and_judge(stored_on_both, scenario, json.dumps(document).encode())


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """Draw a text document with a piece cut out, doubled, or overwritten."""
    document = draw(st.sampled_from([IOR_TEXT, IOR_CSV, IOR_JSON, DCP]))
    start = draw(st.integers(0, len(document)))
    end = draw(st.integers(start, min(len(document), start + 200)))
    piece = draw(
        st.sampled_from([b"", document[start:end] * 2, b"9" * 30, b"-", b"nan", b"\n", b"1e999"])
        | st.binary(max_size=20)
    )
    return document[:start] + piece + document[end:]


@FEW
@given(damaged())
def test_a_damaged_document_gets_an_answer_and_a_judgement(
    stored_on_both: TestClient, scenario: dict[str, Any], document: bytes
) -> None:
    _post_and_judge(stored_on_both, scenario, document)


@FEW
@given(
    st.sampled_from(["GET", "POST", "PUT", "DELETE"]),
    st.sampled_from(["/v1/scenarios", "/v1/scenarios/{id}", "/v1/scenarios/{id}/gap-report", "/problems"]),
    st.dictionaries(
        st.sampled_from(["limit", "cursor", "storage_label", "runs", "nodes", "ran_at", "x"])
        | st.text(max_size=3),
        st.text(max_size=12),
        max_size=3,
    ),
    st.dictionaries(
        st.sampled_from(["If-Match", "If-None-Match", "Accept", "Content-Encoding", "X-Request-Id"]),
        st.text(st.characters(min_codepoint=32, max_codepoint=255, exclude_characters="\x7f"), max_size=12),
        max_size=3,
    ),
)
def test_any_parameters_and_headers_get_an_answer(
    stored_on_both: TestClient,
    scenario: dict[str, Any],
    method: str,
    path: str,
    params: dict[str, str],
    headers: dict[str, str],
) -> None:
    answer = stored_on_both.request(
        method,
        path.replace("{id}", scenario["id"]),
        params=params,
        headers={name.encode(): value.strip().encode("latin-1") for name, value in headers.items()},
        content="{}",
    )
    assert answer.status_code < 500, answer.text
    if answer.status_code >= 400:
        assert answer.headers["content-type"] == PROBLEM
