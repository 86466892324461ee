"""Received bytes as a text, or the reason why they are none."""

import gzip
import io
import pickle
import tarfile
import zipfile

import pytest

from service.errors import UnreadableDocument
from service.parsers.document import read
from service.parsers.environment import without_environment


def refused(data: bytes) -> UnreadableDocument:
    with pytest.raises(UnreadableDocument) as caught:
        read(data)
    return caught.value


def zipped() -> bytes:
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w") as archive:
        archive.writestr("a.txt", "a")
    return body.getvalue()


def tarred() -> bytes:
    body = io.BytesIO()
    with tarfile.open(fileobj=body, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("a"))
    return body.getvalue()


@pytest.mark.parametrize("data", [b"", b" \n\t\r\n", b"\xef\xbb\xbf", b"\xff\xfe"])
def test_nothing_is_empty(data: bytes) -> None:
    assert refused(data).code == "empty"


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (gzip.compress(b"text", mtime=0), "gzip"),
        (zipped(), "zip"),
        (tarred(), "tar"),
        (pickle.dumps({"a": 1}, protocol=2), "pickle"),
        (pickle.dumps({"a": 1}, protocol=5), "pickle"),
        (b"\x00\x05\x16\x07\x00\x02\x00\x00Mac OS X", "AppleDouble"),
        (b"\x7fELF\x02\x01", "program"),
        ("text".encode("utf-16-le"), "UTF-16"),
        (bytes(range(256)) * 4, "NUL"),
        (b"text\x01\x02\x03\x04" * 9, "binary"),
        ("text".encode("utf-16") + b"\x00", "damaged"),
    ],
)
def test_binary_data_is_refused_by_what_it_is(data: bytes, what: str) -> None:
    error = refused(data)
    assert error.code == "binary"
    assert what in error.detail


def test_a_nul_in_a_text_is_refused_by_its_line() -> None:
    assert refused(b"one\ntwo\nth\x00ree\n").line == 3


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "latin-1"])
def test_a_text_is_read_in_any_of_the_usual_encodings(encoding: str) -> None:
    assert read("Zoë\nread\n".encode(encoding)).text == "Zoë\nread\n"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r\r\n", "\r"])
def test_lines_are_the_received_document_s(end: str) -> None:
    assert read(f"one{end}{end}three".encode()).lines == ["one", "", "three"]


def test_other_separators_end_no_line() -> None:
    assert read("a\x0cb\x85c\u2028d\n".encode()).lines == ["a\x0cb\x85c\u2028d", ""]


def test_json_is_read_when_asked_for() -> None:
    document = read(b' {"a": [1]}')
    assert document.json == {"a": [1]}
    assert document.json_fault is None


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("text", "not_json"),
        ('{"a": 1', "not_json"),
        ('{"a": NaN}', "non_finite_number"),
        ('{"a":1,"a":1}', "duplicate_key"),
    ],
)
def test_what_is_no_json_says_why(text: str, code: str) -> None:
    document = read(text.encode())
    assert document.json is None
    assert document.json_fault is not None
    assert document.json_fault.code == code


# The environment dump

START, END = "STARTING ENVIRON LOOP\n", "ENDING ENVIRON LOOP\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
def test_a_dump_is_cut_out_in_any_encoding(encoding: str) -> None:
    text = f"Zoë\n{START}A=secret\n\nB=two\nlines\n{END}after\n"
    assert without_environment(text.encode(encoding)) == "Zoë\nafter\n".encode(encoding)


def test_a_document_without_a_dump_comes_back_unchanged() -> None:
    data = b"one\r\ntwo\x00\xff\r"
    assert without_environment(data) is data


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (f"Machine : a\n{START}A=secret\nB=secret\n", "Machine : a\n"),
        (f"Machine : a\n{START}A=secret\nTestID : 0\nwrite\n", "Machine : a\nTestID : 0\nwrite\n"),
        (f"Machine : a\nA=secret\n{END}TestID : 0\n", "Machine : a\nTestID : 0\n"),
        (f"{START}A=secret\n{END}kept\n{START}B=secret\n{END}", "kept\n"),
        (f"[1,0]<stdout>:{START}[1,0]<stdout>:A=secret\n[1,0]<stdout>:{END}kept\n", "kept\n"),
    ],
)
def test_a_dump_with_a_marker_lost_is_cut_to_the_next_line_of_ior(text: str, left: str) -> None:
    assert without_environment(text.encode()).decode() == left


def test_a_dump_that_lost_its_end_is_cut_beyond_its_last_variable() -> None:
    text = f"IOR-4.0.0: MPI\n{START}A=1\nM=foo\nMachine: x\nTOKEN=s3cret\nTestID              : 0\nOptions:\n"
    kept = without_environment(text.encode())
    assert kept == b"IOR-4.0.0: MPI\nTestID              : 0\nOptions:\n"
