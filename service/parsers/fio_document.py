"""The JSON documents in a file of fio's, and the text that fio prints around them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from service import strict_json
from service.errors import UnreadableDocument
from service.parsers.document import Document
from service.parsers.ior_log import LogLines
from service.parsers.ior_prefix import line_prefix, unprefixed

OPENING = re.compile(
    r'^([^\n{"]{0,80})\{[ \t]{0,8}(?:\n[^\n{"]{0,120})?"fio version"[ \t]{0,8}:', re.MULTILINE
)
_TOKENS = re.compile(r'"(?:[^"\\\n]|\\.)*+"?|[{}]')
"""Strings, closed or not, and braces: every character is looked at once."""


@dataclass(frozen=True, slots=True)
class Found:
    """One JSON document and the line on which it begins, which is None where there is nothing else."""

    value: Mapping[str, Any]
    line: int | None

    def refusal(self, code: str, detail: str, *path: str | int) -> UnreadableDocument:
        """Return the error for a place of this document; `detail` goes on after the place."""
        pointer = strict_json.pointer(*path)
        if self.line is None:
            return UnreadableDocument(code, f"{pointer} {detail}", pointer=pointer)
        return UnreadableDocument(
            code, f"In the document of line {self.line}, {pointer} {detail}", line=self.line, pointer=pointer
        )


@dataclass(slots=True)
class Contents:
    """What a file holds: documents, the lines of text among them, and where documents were cut off.

    Attributes:
        documents: Those that are whole.
        text_lines: The lines that are none.
        signal_line: The first of these that says that a signal or a time limit ended fio.
        wrong_data_line: The first that tells of wrong data.
        cut_lines: Where documents begin that were cut off.
        ends_cut: Whether the last one was.
    """

    documents: list[Found] = field(default_factory=list)
    text_lines: LogLines = field(default_factory=LogLines)
    signal_line: int | None = None
    wrong_data_line: int | None = None
    cut_lines: list[int] = field(default_factory=list)
    ends_cut: bool = False

    def take_text(self, line: str, number: int) -> None:
        """Take in a line that is no JSON, and not blank."""
        self.text_lines.take(number)
        if self.signal_line is None and ("terminating on signal" in line or "terminating on timeout" in line):
            self.signal_line = number
        if self.wrong_data_line is None and (line.startswith("verify: ") or "verify failed" in line):
            self.wrong_data_line = number


def _end(text: str, start: int, stop: int) -> int | None:
    """Return where the object that begins at `start` ends, or None if it does not."""
    depth = 0
    for token in _TOKENS.finditer(text, start, stop):
        found = token[0]
        if found == "{":
            depth += 1
        elif found == "}":
            depth -= 1
            if depth == 0:
                return token.end()
    return None


def contents(document: Document) -> Contents:
    """Return the documents of a file.

    Raises:
        UnreadableDocument: One of them is no strict JSON.
    """
    value = document.json
    if isinstance(value, dict) and "fio version" in value:
        return Contents(documents=[Found(value, None)])
    text = document.text
    first = OPENING.search(text)
    prefix = line_prefix(first[1]) if first else None
    if prefix is not None:
        text = "\n".join(unprefixed(line, prefix) for line in document.lines)
    found = Contents()
    starts = [opening.end(1) for opening in OPENING.finditer(text)]
    line, at = 1, 0

    def pass_over(until: int) -> None:
        nonlocal line, at
        for number, content in enumerate(text[at:until].split("\n"), start=line):
            line_of_text = content.strip()
            if line_of_text:
                found.take_text(line_of_text, number)
        line += text.count("\n", at, until)
        at = until

    for start, stop in zip(starts, [*starts[1:], len(text)], strict=True):
        pass_over(start)
        end = _end(text, start, stop)
        if end is None:
            found.cut_lines.append(line)
            found.ends_cut = stop == len(text)
            end = stop
        else:
            found.documents.append(Found(_loads(text[start:end], line), line))
        line += text.count("\n", at, end)
        at = end
    pass_over(len(text))
    if not found.documents:
        raise UnreadableDocument(
            "not_json",
            f"The document of fio that begins in line {line if not starts else found.cut_lines[0]} is cut off; "
            "post the whole file of a run that finished.",
            line=found.cut_lines[0] if found.cut_lines else 1,
        )
    return found


def _loads(text: str, line: int) -> Mapping[str, Any]:
    try:
        value = strict_json.loads(text)
    except strict_json.JsonFault as fault:
        if fault.line is not None:  # again with the lines of the whole file, for the message
            try:
                strict_json.loads("\n" * (line - 1) + text)
            except strict_json.JsonFault as placed:
                fault = placed
        raise UnreadableDocument(
            fault.code,
            f"fio's JSON cannot be read: {fault.detail} Post the file as fio wrote it.",
            line=fault.line or line,
            pointer=fault.pointer,
        ) from None
    assert isinstance(value, dict)  # noqa: S101 - it begins with a brace
    return value
