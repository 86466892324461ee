"""The register of formats: how each is recognised, and which parser reads it.

To add a format, write one module with `recognises(document)` and `parse(document)`, and give it one line in
`FORMATS`. The first format that recognises a document reads it, so the narrow ones stand before the wide.
"""

from collections.abc import Callable
from dataclasses import dataclass

from service.errors import UnreadableDocument
from service.parsers import (
    dcp_timing,
    dlio_summary,
    elbencho_csv,
    elbencho_json,
    fio_json,
    io500_summary,
    ior_csv,
    ior_json,
    ior_rank_csv,
    ior_text,
    mdtest_text,
)
from service.parsers.document import Document, read
from service.parsers.environment import blanked, removed, without_environment
from service.parsers.measurement import Record
from service.parsers.unknown import looks_like

__all__ = ["FORMATS", "Document", "Format", "parse", "read", "without_environment"]


@dataclass(frozen=True, slots=True)
class Format:
    """One kind of document.

    Attributes:
        name: As `Record.format` and the API show it.
        recognises: Whether a document is of this kind, by its content; quick, and never raises.
        parse: What it holds; raises UnreadableDocument where it cannot be used.
    """

    name: str
    recognises: Callable[[Document], bool]
    parse: Callable[[Document], Record]


FORMATS: tuple[Format, ...] = (
    Format("dcp-timing", dcp_timing.recognises, dcp_timing.parse),
    Format("ior-json", ior_json.recognises, ior_json.parse),
    Format("dlio-summary", dlio_summary.recognises, dlio_summary.parse),
    Format("ior-rank-csv", ior_rank_csv.recognises, ior_rank_csv.parse),
    Format("ior-csv", ior_csv.recognises, ior_csv.parse),
    Format("fio-json", fio_json.recognises, fio_json.parse),
    Format("elbencho-json", elbencho_json.recognises, elbencho_json.parse),
    Format("elbencho-csv", elbencho_csv.recognises, elbencho_csv.parse),
    Format("ior-text", ior_text.recognises, ior_text.parse),
    Format("mdtest-text", mdtest_text.recognises, mdtest_text.parse),
    Format("io500-summary", io500_summary.recognises, io500_summary.parse),
)


_LOGS = frozenset(("ior-text", "mdtest-text", "io500-summary"))
"""The formats that are read out of a job's log, whose other lines are passed over."""


def _refuse_mixed(document: Document, known: Format) -> None:
    """Raise `mixed_formats` for a log that holds the output of another tool, which would be passed over."""
    if known.name not in _LOGS:
        return
    for other in FORMATS:
        if other.name in _LOGS and other is not known and other.recognises(document):
            raise UnreadableDocument(
                "mixed_formats",
                f"The document holds both {known.name} and {other.name}; post the output of each tool as a document of "
                "its own.",
            )


def parse(data: bytes) -> Record:
    """Return what a document holds, whatever its format, and whether an environment dump was cut out of it.

    Args:
        data: The body as it was received.

    Raises:
        UnreadableDocument: `empty`, `binary`, `unknown_format`, `mixed_formats`, or what its parser finds wrong.
    """
    document, held_environment = blanked(read(data))
    for known in FORMATS:
        if known.recognises(document):
            try:
                _refuse_mixed(document, known)
                record = known.parse(document)
            except UnreadableDocument as error:
                error.format = known.name
                raise
            if held_environment:
                return record.model_copy(update={"doubts": [*record.doubts, removed()]})
            return record
    names = ", ".join(known.name for known in FORMATS)
    raise UnreadableDocument(
        "unknown_format", f"The document is of no known format: {looks_like(document)}; accepted are {names}."
    )
