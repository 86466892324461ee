"""Packed bodies: read as if they were not, bounded when unpacked, refused when broken."""

import gzip
import json
import sys
from collections.abc import Callable

import pytest
from fastapi.testclient import TestClient

from service.api.encodings import ENCODINGS, BrokenEncoding
from service.api.examples import LLAMA_405B_SYNC as SYNC
from tests.api.asking import problem as refused
from tests.api.test_bodies import LIMIT, _paths, small  # noqa: F401 - a fixture

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

PACK: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "zstd": zstd.compress,
    "GZip": gzip.compress,
}
BODY = json.dumps(SYNC).encode()


@pytest.mark.parametrize("encoding", PACK)
def test_a_packed_body_is_read_as_if_it_were_not(stateless: TestClient, encoding: str) -> None:
    plain = stateless.post("/v1/sizings", content=BODY)
    packed = stateless.post(
        "/v1/sizings", content=PACK[encoding](BODY), headers={"Content-Encoding": encoding}
    )
    assert (packed.status_code, packed.content) == (200, plain.content)


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_members_on_end_are_one_body(stateless: TestClient, encoding: str) -> None:
    content = PACK[encoding](BODY[:100]) + PACK[encoding](BODY[100:])
    answer = stateless.post("/v1/sizings", content=content, headers={"Content-Encoding": encoding})
    assert answer.status_code == 200


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_a_body_that_unpacks_beyond_the_limit_is_too_large(small: TestClient, encoding: str) -> None:  # noqa: F811
    bomb = PACK[encoding](b" " * (50 * LIMIT))
    assert len(bomb) < LIMIT
    for path in _paths(small):
        refused(small.post(path, content=bomb, headers={"Content-Encoding": encoding}), 413, "too-large")


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
@pytest.mark.parametrize(
    "spoil",
    [lambda packed: packed[:-5], lambda packed: b"{}" + packed, lambda packed: packed + b"and more"],
    ids=["cut", "not packed", "garbage behind"],
)
def test_a_broken_encoding_is_refused_with_a_pointer(
    small: TestClient,  # noqa: F811
    encoding: str,
    spoil: Callable[[bytes], bytes],
) -> None:
    content = spoil(PACK[encoding](b"{}"))
    for path in _paths(small):
        upload = "benchmark-runs" in path
        answer = small.post(path, content=content, headers={"Content-Encoding": encoding})
        body = refused(answer, 422 if upload else 400, "unreadable-document" if upload else "malformed-json")
        assert [(fault["pointer"], fault["code"]) for fault in body["errors"]] == [("#", "broken_encoding")]


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_pieces_of_any_size_unpack_to_the_same(encoding: str) -> None:
    packed = PACK[encoding](BODY * 50)
    for size in (1, 7, len(packed)):
        unpacker = ENCODINGS[encoding]()
        made = b"".join(
            unpacker.feed(packed[at : at + size], room=10**6) for at in range(0, len(packed), size)
        )
        unpacker.finish()
        assert made == BODY * 50


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_no_more_than_one_byte_beyond_the_room_is_made(encoding: str) -> None:
    assert len(ENCODINGS[encoding]().feed(PACK[encoding](b"x" * 10**6), room=1000)) == 1001


def test_an_empty_body_is_no_broken_one() -> None:
    for start in ENCODINGS.values():
        start().finish()


def test_a_cut_stream_is_told_at_its_end() -> None:
    unpacker = ENCODINGS["gzip"]()
    unpacker.feed(gzip.compress(BODY)[:-9], room=10**6)
    with pytest.raises(BrokenEncoding, match="cut"):
        unpacker.finish()
