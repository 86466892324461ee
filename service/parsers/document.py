"""Received bytes as a text that a parser can read, or the reason why they are none.

Encodings are sorted out here once: UTF-8 with or without a byte order mark, UTF-16 and UTF-32 with one, and
Latin-1 for the rest, because job logs carry whatever the terminal did. Archives, pickles and other binary
files are refused by their first bytes. Everything costs time and memory linear in the size of the body.
"""

import codecs
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from service import strict_json
from service.errors import UnreadableDocument

_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"\x1f\x8b", "a gzip archive; unpack it and post the file inside"),
    (b"PK\x03\x04", "a zip archive (torch.save writes these too); post the benchmark's own output"),
    (b"PK\x05\x06", "an empty zip archive; post the benchmark's own output"),
    (b"BZh", "a bzip2 archive; unpack it and post the file inside"),
    (b"\xfd7zXZ\x00", "an xz archive; unpack it and post the file inside"),
    (b"\x28\xb5\x2f\xfd", "a zstd archive; unpack it and post the file inside"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive; unpack it and post the file inside"),
    (
        b"\x00\x05\x16\x07",
        "an AppleDouble file that macOS puts beside the real one; post the file without `._`",
    ),
    (b"\x00\x05\x16\x00", "an AppleSingle file of macOS; post the file that it wraps"),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file; post the benchmark's output, not what it wrote"),
    (b"\x89PNG", "a PNG picture; post the text that it shows"),
    (b"\xff\xd8\xff", "a JPEG picture; post the text that it shows"),
    (b"%PDF", "a PDF; post the text that it shows"),
    (b"\x7fELF", "a program; post its output"),
    (b"SQLite format 3\x00", "an SQLite database; post the benchmark's own output"),
)

_CONTROLS = bytes((*range(0x07), *range(0x0E, 0x1B), *range(0x1C, 0x20), 0x7F))
_HIGH_CONTROLS = [chr(code) for code in range(0x80, 0xA0)]
_CONTROL_FRACTION = 0.01
"""A log may hold a stray control character; a binary file holds many."""


MOST_LINES = 10_000_000
"""Twelve bytes for each in the largest document that is taken by default; those of benchmarks are longer."""
_PIECE = 100_000
"""Characters, and the rest of a line, that are split into lines at once."""


@dataclass(frozen=True)
class Document:
    """An upload as text.

    Attributes:
        text: The decoded body, every line ended by a bare newline.
    """

    text: str

    @property
    def lines(self) -> list[str]:
        """The lines without their ends; line n of the received document is `lines[n - 1]`."""
        return self.text.split("\n")

    def numbered(self) -> Iterator[tuple[int, str]]:
        """Yield the lines and their numbers, from 1: a list of short lines weighs several times the text."""
        text, start, number = self.text, 0, 1
        while start <= len(text):
            stop = text.find("\n", start + _PIECE)
            lines = (text[start:] if stop < 0 else text[start:stop]).split("\n")
            yield from enumerate(lines, start=number)
            if stop < 0:
                return
            number += len(lines)
            start = stop + 1

    @property
    def last_number(self) -> int:
        """The number of the last line that is not blank; 1 where all are."""
        return self.text.count("\n", 0, len(self.text.rstrip())) + 1

    @cached_property
    def _json(self) -> tuple[Any, strict_json.JsonFault | None]:
        if self.text.lstrip()[:1] not in ("{", "["):
            return None, strict_json.JsonFault(
                "not_json", "The text does not start as a JSON document.", line=1
            )
        try:
            return strict_json.loads(self.text), None
        except strict_json.JsonFault as fault:
            return None, fault

    @property
    def json(self) -> Any:  # noqa: ANN401 - whatever JSON holds
        """The value of a text that is one strict JSON object or list, else None."""
        return self._json[0]

    @property
    def json_fault(self) -> strict_json.JsonFault | None:
        """Why `json` is None, where the text is no strict JSON."""
        return self._json[1]


def _refusal(what: str) -> UnreadableDocument:
    return UnreadableDocument("binary", f"The document is not text: it looks like {what}.")


def _is_pickle(data: bytes) -> bool:
    """Tell a pickle of protocol 2 or later, such as the `.metadata` file of a torch checkpoint."""
    return data[:1] == b"\x80" and 2 <= data[1] <= 5 if len(data) > 1 else False


def _decode(data: bytes) -> str:
    # The mark of UTF-32 begins with that of UTF-16, so it goes first.
    for mark, encoding in (
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF32_LE, "utf-32-le"),
        (codecs.BOM_UTF32_BE, "utf-32-be"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
    ):
        if data.startswith(mark):
            if encoding == "utf-8":
                return data[len(mark) :].decode("utf-8", errors="replace")
            try:
                return data[len(mark) :].decode(encoding)
            except UnicodeDecodeError:
                raise UnreadableDocument(
                    "binary", "The document begins as UTF-16 or UTF-32 text and is damaged; save it as UTF-8."
                ) from None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def _controls(text: str) -> int:
    """Return how many control characters a text holds that no terminal needs."""
    encoded = text.encode()  # in which these are what they are in ASCII
    count = len(encoded) - len(encoded.translate(None, _CONTROLS))
    return count if len(encoded) == len(text) else count + sum(map(text.count, _HIGH_CONTROLS))


def read(data: bytes) -> Document:
    """Return the body as text.

    Raises:
        UnreadableDocument: `empty`, or `binary` for what is no text.
    """
    if not data:
        raise UnreadableDocument(
            "empty", "The document is empty; post the output of a benchmark as the body."
        )
    for magic, what in _MAGIC:
        if data.startswith(magic):
            raise _refusal(what)
    if _is_pickle(data):
        raise _refusal("a Python pickle, such as a checkpoint's .metadata; post the timing document instead")
    if data[257:262] == b"ustar":
        raise _refusal("a tar archive; unpack it and post the file inside")
    text = _decode(data)
    if "\x00" in text:
        if data[:2000].count(0) * 3 > len(data[:2000]):
            raise _refusal("UTF-16 text without a byte order mark, or binary data; save it as UTF-8")
        raise UnreadableDocument(
            "binary",
            "The document holds NUL bytes, as a file does that was cut off by a full disk or is no text; "
            "post the benchmark's own output.",
            line=text.count("\n", 0, text.index("\x00")) + 1,
        )
    if _controls(text) > _CONTROL_FRACTION * len(text) + 1:
        raise _refusal("binary data; post the benchmark's own output")
    if not text.strip():
        raise UnreadableDocument(
            "empty", "The document holds only white space; post the output of a benchmark."
        )
    if text.count("\n") > MOST_LINES:
        raise UnreadableDocument(
            "too_many_lines",
            f"The document has more than {MOST_LINES} lines; post the benchmark's own output alone.",
        )
    if "\r" in text:
        text = text.replace("\r\r\n", "\n").replace("\r\n", "\n")
        if "\n" not in text:
            text = text.replace("\r", "\n")
    return Document(text)
