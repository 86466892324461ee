"""elbencho's JSON output (`--jsonfile`): one object a line, one line a phase, every number a string.

elbencho appends to the file, so that it may hold several runs.
"""

import re
from collections.abc import Mapping
from typing import Any

from service import strict_json
from service.errors import UnreadableDocument
from service.parsers import elbencho
from service.parsers.document import Document
from service.parsers.elbencho import Phase
from service.parsers.ior import Place, refusal
from service.parsers.ior_prefix import line_prefix, unprefixed
from service.parsers.measurement import Record
from service.wire import EXACT_INTEGER_MAX

NAME = "elbencho-json"

_OPENING = re.compile(r'^([^\n{"]{0,80})\{[ \t]{0,8}"(?:phase_type|phase_id|iso_start_date)"', re.MULTILINE)
_FIRST_KEYS = ('"phase_type"', '"phase_id"', '"iso_start_date"')
_NUMBERS = ("paths", "hosts", "threads", "dirs", "files", "file_size", "block_size")
_FLAGS = {"true": True, "false": False, "1": True, "0": False}


def recognises(document: Document) -> bool:
    """Tell whether a line begins as one of elbencho's objects, whole or cut off."""
    text = document.text
    if not any(key in text for key in _FIRST_KEYS):
        return False
    if _OPENING.search(text):
        return True
    if isinstance(document.json, dict):
        return {"phase_type", "last_done"} <= document.json.keys()
    return any(
        line.startswith("{") and '"phase_type"' in line and '"last_done"' in line
        for _, line in document.numbered()
    )


def parse(document: Document) -> Record:
    """Return what elbencho's JSON output holds.

    Raises:
        UnreadableDocument: `not_json` and its kin, `bad_row`, `missing_key`, `bad_number`, `inconsistent_row`,
            `contradictory_setup`, `no_results`; always with the line.
    """
    opening = _OPENING.search(document.text)
    prefix = line_prefix(opening[1]) if opening else None
    phases: list[Phase] = []
    text_lines: list[int] = []
    cut_line: int | None = None
    last = document.last_number
    for number, received in document.numbered():
        line = unprefixed(received, prefix).strip()
        if not line:
            continue
        if not line.startswith("{"):
            if '"phase_type"' in line or '"last_done"' in line:
                raise refusal(
                    "not_json",
                    "holds an object of elbencho's that does not begin there; post the file as elbencho wrote it.",
                    Place(line=number),
                )
            text_lines.append(number)
            continue
        try:
            value = strict_json.loads(line)
        except strict_json.JsonFault as fault:
            if number == last and fault.code == "not_json" and line.count("{") > line.count("}"):
                cut_line = number
                continue
            at = f" ({fault.pointer})" if fault.pointer else ""
            detail = re.sub(r"^Line 1, column", "column", fault.detail)
            raise UnreadableDocument(
                fault.code,
                f"Line {number} cannot be read as JSON{at}: {detail} Post the file as elbencho wrote it, one object "
                "a line.",
                line=number,
                pointer=fault.pointer,
            ) from None
        phases.append(_phase(value, number))
    return elbencho.record(NAME, phases, cut_line=cut_line, text_lines=text_lines, hint="--jsonfile")


def _phase(value: Mapping[str, Any], number: int) -> Phase:
    """Return a phase; of one that is not read only what its neighbours need."""
    place = Place(line=number)
    name = value.get("phase_type")
    if not isinstance(name, str) or not name:
        raise refusal("bad_row", "is no phase of elbencho's; post the file as elbencho wrote it.", place)
    config, last_done = (_object(value, key, place) for key in ("config", "last_done"))
    version, command = (_text(config.get(key)) for key in ("version", "command"))
    started = elbencho.date(value.get("iso_start_date"))
    if name not in elbencho.OPERATIONS:
        return Phase(
            place=place,
            name=name,
            version=version,
            command=command,
            started=started,
            milliseconds=_unread(last_done.get("elapsed_time_ms")),
        )
    first_done = _object(value, "first_done", place) if "first_done" in value else {}
    return Phase(
        place=place,
        name=name,
        version=version,
        command=command,
        started=started,
        path_type=_text(config.get("path_type")),
        numbers={key: found for key in _NUMBERS if (found := _whole(config, key, place)) is not None},
        direct=_flag(config, "direct_io", place),
        random=_flag(config, "random_offsets", place),
        milliseconds=_whole(last_done, "elapsed_time_ms", place),
        first_milliseconds=_whole(first_done, "elapsed_time_ms", place),
        rate=_whole(last_done, "bytes/s", place),
        bytes=_whole(last_done, "bytes", place),
        first_bytes=_whole(first_done, "bytes", place),
        calls_per_second=_whole(last_done, "iops", place),
        entries=_whole(last_done, "entries", place),
        entries_per_second=_whole(last_done, "entries/s", place),
    )


def _object(value: Mapping[str, Any], key: str, place: Place) -> Mapping[str, Any]:
    found = value.get(key)
    if not isinstance(found, dict):
        raise refusal("missing_key", f"has no {key}; post the file as elbencho wrote it.", place)
    return found


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _unread(value: object) -> int | None:
    """Return the time of a phase that is not read, and that rejects no file."""
    return int(value) if isinstance(value, str) and re.fullmatch(r"[0-9]{1,11}", value) else None


def _whole(value: Mapping[str, Any], key: str, place: Place) -> int | None:
    """Return a number, which elbencho writes as a string; None where it is absent."""
    found = value.get(key)
    if found is None:
        return None
    if type(found) is int and 0 <= found <= EXACT_INTEGER_MAX:
        return found
    return elbencho.whole(found if isinstance(found, str) else f"a {type(found).__name__}", key, place)


def _flag(value: Mapping[str, Any], key: str, place: Place) -> bool | None:
    found = value.get(key)
    if found is None or isinstance(found, bool):
        return found
    if not isinstance(found, str) or found not in _FLAGS:
        raise refusal(
            "bad_value", f"has no true or false for {key}; post the file as elbencho wrote it.", place
        )
    return _FLAGS[found]
