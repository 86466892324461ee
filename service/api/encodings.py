"""Content encodings of a request body: gzip and zstd, unpacked as they arrive and never beyond the body's limit."""

import sys
import zlib
from collections.abc import Callable
from typing import Protocol

if sys.version_info >= (3, 14):
    from compression.zstd import ZstdDecompressor, ZstdError
else:
    from backports.zstd import ZstdDecompressor, ZstdError


class BrokenEncoding(ValueError):
    """A body is not what its Content-Encoding says, or ends before its compressed form does."""


class _Stream(Protocol):
    """What zlib's and zstd's decompressors have in common."""

    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...


class Unpacker:
    """Unpacks one compressed body, piece by piece. Several members or frames on end are one body.

    Args:
        start: Makes the decompressor of one member.
        unpack: Unpacks a piece with it, to so many bytes at most.
    """

    def __init__(self, start: Callable[[], _Stream], unpack: Callable[[_Stream, bytes, int], bytes]) -> None:
        self._start = start
        self._unpack = unpack
        self._stream: _Stream | None = None

    def feed(self, piece: bytes, *, room: int) -> bytes:
        """Return what a piece unpacks to, but no more than one byte beyond `room`.

        Raises:
            BrokenEncoding: It is not in this encoding.
        """
        found: list[bytes] = []
        while piece and room >= 0:
            if self._stream is None or self._stream.eof:
                self._stream = self._start()
            try:
                # The limit is one more than there is room for: what passes it is seen, and unpacked no further.
                made = self._unpack(self._stream, piece, room + 1)
            except (zlib.error, ZstdError) as error:
                raise BrokenEncoding(f"The body is not in its Content-Encoding: {error}.") from None
            found.append(made)
            room -= len(made)
            piece = self._stream.unused_data if self._stream.eof else b""
        return b"".join(found)

    def finish(self) -> None:
        """Raise BrokenEncoding where the body ended before its compressed form did."""
        if self._stream is not None and not self._stream.eof:
            raise BrokenEncoding("The body ends before its compressed form does: it was cut on its way.")


def _gzip() -> Unpacker:
    return Unpacker(
        lambda: zlib.decompressobj(wbits=16 + zlib.MAX_WBITS),
        lambda stream, piece, most: stream.decompress(piece, most),  # type: ignore[attr-defined]
    )


def _zstd() -> Unpacker:
    return Unpacker(
        ZstdDecompressor,
        lambda stream, piece, most: stream.decompress(piece, max_length=most),  # type: ignore[attr-defined]
    )


ENCODINGS: dict[str, Callable[[], Unpacker]] = {"gzip": _gzip, "x-gzip": _gzip, "zstd": _zstd}
"""The encodings that are read, besides none at all."""
