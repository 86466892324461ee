"""Every labelled file of both manifests, by class: taken or refused as it should be, with the doubts it must raise.

The figures are compared in the modules of the single formats. Here nothing can be left out: a file that no
entry names, and an entry without its file, are failures too.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from service.errors import UnreadableDocument
from service.parsers import register
from tests.parsers.manifest import FACTUAL, codes, outcome

DATA = Path(__file__).parent.parent / "data"
TAKEN = {"accept", "accept_with_warnings"}

OUR_NAMES = {"text": "ior-text", "json": "ior-json", "csv": "ior-csv", "elbencho-jsonl": "elbencho-json"}
"""The manifest's names of formats, where they are not ours."""


def _manifest(folder: str) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = json.loads((DATA / folder / "MANIFEST.json").read_text("utf-8"))["files"]
    return entries


def _class(entry: dict[str, Any]) -> str:
    name: str = OUR_NAMES.get(entry["format"], entry["format"])
    return name


def _benchmarks() -> list[Any]:
    return [
        pytest.param(entry, id=f"{_class(entry)}: {'/'.join(entry['expected']['outcome'])}: {entry['file']}")
        for entry in _manifest("benchmarks")
    ]


def _dcp() -> list[Any]:
    return [
        pytest.param(entry, id=f"dcp-timing: {entry['expect']}: {entry['file']}")
        for entry in _manifest("dcp")
        if entry["expect"] != "convert"
    ]


@pytest.mark.parametrize("entry", _benchmarks())
def test_a_benchmark_file_is_taken_or_refused_as_labelled(entry: dict[str, Any]) -> None:
    expected = entry["expected"]
    outcomes = set(expected["outcome"])
    record = outcome((DATA / "benchmarks" / entry["file"]).read_bytes())
    if isinstance(record, UnreadableDocument):
        assert "reject" in outcomes, record.detail
        assert record.detail.strip().endswith((".", ")"))
        return
    assert outcomes & TAKEN
    assert record.format == _class(entry)
    assert set(expected.get("must_warn", ())) <= {code.value for code in codes(record)}
    if outcomes == {"accept"}:
        assert not FACTUAL & codes(record)


@pytest.mark.parametrize("entry", _dcp())
def test_a_dcp_timing_document_is_taken_or_refused_as_labelled(entry: dict[str, Any]) -> None:
    content = (DATA / "dcp" / entry["file"]).read_bytes()
    if entry["expect"] == "reject":
        with pytest.raises(UnreadableDocument) as caught:
            register.parse(content)
        assert caught.value.code == entry["reason_code"]
        assert caught.value.pointer is not None
        return
    record = register.parse(content)
    assert record.format == "dcp-timing"
    assert not FACTUAL & codes(record)


@pytest.mark.parametrize("folder", ["benchmarks", "dcp"])
def test_every_file_has_its_entry_and_every_entry_its_file(folder: str) -> None:
    named = {entry["file"] for entry in _manifest(folder)}
    there = {
        file.relative_to(DATA / folder).as_posix()
        for file in (DATA / folder).rglob("*")
        if file.is_file() and file.name not in ("MANIFEST.json", "dcp-timing.schema.json")
    }
    assert named == there
