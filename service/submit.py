"""`stallbudget submit`: posts files to a service, one after the other, and says what became of each.

A file is streamed, never held in memory. A request that met a dead connection, a busy service (429) or one that
is not available (502, 503, 504), or that is still being answered, is sent again, a bounded number of times, under the
same `Idempotency-Key`, after the time that `Retry-After` asks for, else after one that doubles. Waiting, and the clock
that a date in `Retry-After` is held against, come from the caller.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import StrEnum
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import UUID

import httpx

from service.judgement.doubts import FLATTERS, VOIDS

Json = dict[str, Any]

ATTEMPTS = 6
"""How often one request is sent at most."""

FIRST_WAIT_SECONDS = 1.0
LONGEST_WAIT_SECONDS = 120.0
"""A service that asks for a longer wait than this is not waited for."""

TIMEOUT = httpx.Timeout(60.0, connect=10.0, read=300.0)

SHOWN_PARTS = 7
"""More figures of one run than this are not printed in its line."""

_BUSY = frozenset({429, 502, 503, 504})
_PAGE_ITEMS = 200
_MAX_PAGES = 10_000


class Unreachable(Exception):
    """The service cannot be used: no connection, no answer that it would give, no such scenario."""


class Fate(StrEnum):
    """What became of a file."""

    STORED = "stored"
    ALREADY_STORED = "already stored"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Tags:
    """What is said of every file that is sent; what is None or empty is left to the file.

    Attributes:
        storage_label: Which storage was measured.
        conditions: The state of the storage meanwhile.
        note: Anything worth keeping with the runs.
        ran_at: When they took place, as RFC 3339.
        nodes: How many nodes took part, where a file says none.
    """

    storage_label: str | None = None
    conditions: Sequence[str] = ()
    note: str | None = None
    ran_at: str | None = None
    nodes: int | None = None

    def parameters(self) -> list[tuple[str, str]]:
        """Return them as the parameters of a query."""
        single = (
            ("storage_label", self.storage_label),
            ("note", self.note),
            ("ran_at", self.ran_at),
            ("nodes", None if self.nodes is None else str(self.nodes)),
        )
        return [("conditions", condition) for condition in self.conditions] + [
            (name, value) for name, value in single if value is not None
        ]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one file.

    Attributes:
        file: The file.
        fate: Whether it was stored.
        run_id: The id of its run, where it was.
        figures: What was read from it, in one line.
        standing: What the run can prove, by its doubts.
        doubts: Each doubt: its code and its sentence.
        notice: Where these bytes were stored before under other tags: that they keep those.
        reason: Why it was refused: the problem's detail, and the first error where that says more.
    """

    file: Path
    fate: Fate
    run_id: str | None = None
    figures: str = ""
    standing: str = ""
    doubts: list[tuple[str, str]] = field(default_factory=list)
    notice: str | None = None
    reason: str = ""

    def text(self) -> str:
        """Return the outcome as it is printed: a line, and one for each doubt."""
        if self.fate is Fate.REFUSED:
            return f"{self.file}: refused: {self.reason}"
        lines = [f"{self.file}: {self.fate} as run {self.run_id}: {self.figures}; {self.standing}"]
        lines += [f"  {self.notice}"] if self.notice is not None else []
        lines += [f"  {code}: {message}" for code, message in self.doubts]
        return "\n".join(lines)


class Submitter:
    """Sends files to one scenario of one service.

    Args:
        client: Knows the service's address.
        wait: Waits for so many seconds.
        tell: Takes a line about a request that is sent again.
        now: Tells the time, for a `Retry-After` that is a date.
    """

    def __init__(
        self,
        client: httpx.Client,
        *,
        wait: Callable[[float], None],
        tell: Callable[[str], None],
        now: Callable[[], datetime],
    ) -> None:
        self._client = client
        self._wait = wait
        self._tell = tell
        self._now = now

    def scenario_id(self, name_or_id: str) -> str:
        """Return the id of a scenario that is given by its id or its name.

        Raises:
            Unreachable: There is none, or the service does not answer.
        """
        if _is_id(name_or_id):
            answer = self._send("GET", f"/v1/scenarios/{name_or_id.lower()}")
            if answer.is_success:
                return str(_object(answer).get("id", name_or_id))
            if answer.status_code == 403:
                # A key that only submits reads nothing; whether there is such a scenario the post will show.
                return name_or_id.lower()
            if answer.status_code != 404:
                raise Unreachable(f"The scenario could not be looked up: {problem(answer)}")
        names: list[str] = []
        parameters = {"limit": str(_PAGE_ITEMS)}
        for _ in range(_MAX_PAGES):
            answer = self._send("GET", "/v1/scenarios", parameters=list(parameters.items()))
            if answer.status_code == 403:
                raise Unreachable(
                    f"A scenario cannot be found by its name with this key; give its id. {problem(answer)}"
                )
            if not answer.is_success:
                raise Unreachable(f"The scenarios could not be listed: {problem(answer)}")
            page = _object(answer)
            items = page.get("items")
            if not isinstance(items, list):
                raise Unreachable(f"{answer.url} did not answer as stallbudget does; check --url.")
            for item in items:
                if item.get("name") == name_or_id:
                    return str(item["id"])
                names.append(str(item.get("name")))
            if not page.get("next_cursor"):
                break
            parameters["cursor"] = str(page["next_cursor"])
        known = ", ".join(names[:10]) + (", …" if len(names) > 10 else "")
        raise Unreachable(
            f"There is no scenario {name_or_id!r}; "
            + (f"there are {known}." if names else "there is none yet.")
        )

    def submit(self, file: Path, *, scenario_id: str, tags: Tags) -> Outcome:
        """Send one file and return what became of it.

        Raises:
            Unreachable: The service does not answer, or fails.
            OSError: The file cannot be read.
        """
        with file.open("rb") as opened:
            digest = hashlib.file_digest(opened, "sha256").hexdigest()
        path = f"/v1/scenarios/{quote(scenario_id, safe='')}/benchmark-runs"
        parameters = tags.parameters()
        # The key is that of the request, so the same file may go to another scenario, or with other tags.
        asked = json.dumps([path, sorted(parameters), digest])
        key = hashlib.sha256(asked.encode()).hexdigest()
        answer = self._send("POST", path, parameters=parameters, file=file, headers={"Idempotency-Key": key})
        if answer.status_code in (200, 201):
            return _stored(file, answer)
        if 400 <= answer.status_code < 500:
            return Outcome(file, Fate.REFUSED, reason=problem(answer))
        raise Unreachable(f"{file}: {problem(answer)}")

    def _send(
        self,
        method: str,
        path: str,
        *,
        parameters: Sequence[tuple[str, str]] = (),
        file: Path | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        """Return the answer to a request, sent again while there is hope.

        Raises:
            Unreachable: There is none.
        """
        sent = {"Accept": "application/json, application/problem+json", **(headers or {})}
        wait_seconds = FIRST_WAIT_SECONDS
        for attempt in range(1, ATTEMPTS + 1):
            asked_seconds = None
            try:
                answer = self._client.request(
                    method,
                    path,
                    params=httpx.QueryParams(list(parameters)) if parameters else None,
                    headers=sent if file is None else {**sent, "Content-Length": str(file.stat().st_size)},
                    content=None if file is None else _chunks(file),
                )
            except (httpx.UnsupportedProtocol, httpx.InvalidURL):
                raise Unreachable(
                    f"{self._client.base_url} is no address of a service, such as http://127.0.0.1:8000."
                ) from None
            except httpx.TransportError as error:
                trouble = f"{self._client.base_url} {_in_words(error)}"
            else:
                if answer.is_redirect:
                    raise Unreachable(
                        f"{self._client.base_url} leads on to {answer.headers.get('location')}; give that as --url."
                    )
                if answer.status_code not in _BUSY and not _is_running(answer):
                    return answer
                trouble = problem(answer)
                asked_seconds = self._asked_wait(answer)
            if attempt == ATTEMPTS:
                break
            if asked_seconds is not None and asked_seconds > LONGEST_WAIT_SECONDS:
                raise Unreachable(
                    f"{trouble} It asks to be tried again in {asked_seconds:.0f} s; do so then."
                )
            pause_seconds = wait_seconds if asked_seconds is None else asked_seconds
            self._tell(f"{trouble} Trying again in {pause_seconds:g} s.")
            self._wait(pause_seconds)
            wait_seconds = min(2 * wait_seconds, LONGEST_WAIT_SECONDS)
        raise Unreachable(f"{trouble} Given up after {ATTEMPTS} attempts.")

    def _asked_wait(self, answer: httpx.Response) -> float | None:
        """Return the seconds that `Retry-After` asks for; None where it does not, or not understandably."""
        value = answer.headers.get("retry-after", "").strip()
        if re.fullmatch(r"[0-9]{1,9}", value):
            return float(value)
        try:
            at = parsedate_to_datetime(value)
        except ValueError:
            return None
        return max(0.0, (at.replace(tzinfo=at.tzinfo or UTC) - self._now()).total_seconds())


def problem(answer: httpx.Response) -> str:
    """Return what a problem document says: its detail, and its first error where that is about something else.

    Of an answer that is none, as a proxy gives it, the status.
    """
    try:
        told = answer.json()
    except ValueError:
        told = None
    detail = told.get("detail") if isinstance(told, dict) else None
    if not isinstance(told, dict) or not isinstance(detail, str):
        return f"{answer.url} answered {answer.status_code} {answer.reason_phrase}."
    listed = told.get("errors")
    first = listed[0] if isinstance(listed, list) and listed and isinstance(listed[0], dict) else {}
    line, pointer, said = first.get("line"), first.get("pointer"), str(first.get("detail", ""))
    place = f"line {line}" if line is not None else str(pointer) if pointer not in (None, "#") else ""
    code = str(first.get("code", ""))
    where = ", ".join(part for part in (code, place) if part)
    more = said if said and said not in detail else ""
    if where and more:
        return f"{detail} ({where}: {more})"
    return f"{detail} ({where})" if where else detail


def _is_running(answer: httpx.Response) -> bool:
    """Return whether the service is still answering the same request, sent before."""
    if answer.status_code != 409:
        return False
    try:
        told = answer.json()
    except ValueError:
        return False
    return isinstance(told, dict) and told.get("type") == "/problems/idempotency-key-in-use"


def _is_id(text: str) -> bool:
    try:
        return str(UUID(text)) == text.lower()
    except ValueError:
        return False


def _object(answer: httpx.Response) -> Json:
    try:
        value = answer.json()
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise Unreachable(f"{answer.url} did not answer as stallbudget does; check --url.")
    return value


_CHUNK_BYTES = 1 << 16


def _chunks(file: Path) -> Iterator[bytes]:
    with file.open("rb") as opened:
        while chunk := opened.read(_CHUNK_BYTES):
            yield chunk


def _in_words(error: httpx.TransportError) -> str:
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
        return f"cannot be connected to ({error})."
    if isinstance(error, httpx.TimeoutException):
        return "does not answer in time."
    return f"broke the connection ({error or type(error).__name__})."


def _stored(file: Path, answer: httpx.Response) -> Outcome:
    run = _object(answer)
    if "id" not in run:
        raise Unreachable(f"{answer.url} did not answer as stallbudget does; check --url.")
    doubts = [doubt for doubt in run.get("doubts", []) if isinstance(doubt, dict)]
    is_new = answer.status_code == 201 and "idempotency-replayed" not in answer.headers
    return Outcome(
        file,
        Fate.STORED if is_new else Fate.ALREADY_STORED,
        run_id=str(run["id"]),
        figures=figures(run),
        standing=standing([str(doubt.get("code")) for doubt in doubts]),
        doubts=[(str(doubt.get("code")), str(doubt.get("message"))) for doubt in doubts],
        notice=str(run["notice"]) if "notice" in run else None,
    )


def standing(codes: Sequence[str]) -> str:
    """Return what a run can prove, as far as its own doubts decide it."""
    if not VOIDS.isdisjoint(codes):
        return "what is doubted here proves nothing"
    if not FLATTERS.isdisjoint(codes):
        return "it can prove that a target is missed, not that it is met"
    return (
        f"usable as evidence, with {len(codes)} doubt{'s' if len(codes) != 1 else ''}"
        if codes
        else "undoubted"
    )


def figures(run: Json) -> str:
    """Return the figures of a run in one line: of each operation its rate, else its time."""
    parts = [f"{run.get('tool', 'unknown tool')} {run.get('tool_version', '')}".strip()]
    for name, told in (run.get("summary") or {}).items():
        shown = _rate(told.get("gb_per_second"), "GB/s")
        blocked = told.get("blocked_seconds_max")
        if blocked is not None:
            shown += f"{', ' if shown else ''}blocked {blocked:.4g} s at most"
        parts.append(f"{name} x{told.get('count', 0)} {shown}".rstrip())
    for told in run.get("measurements") or ():
        rate = _rate((told.get("gb_per_second") or {}).get("mean"), "GB/s") or _rate(
            (told.get("per_second") or {}).get("mean"), "/s"
        )
        nodes = (
            ""
            if told.get("nodes") is None
            else f" on {told['nodes']} node{'s' if told['nodes'] != 1 else ''}"
        )
        parts.append(f"{told.get('operation')} {rate}{nodes}".strip())
    return ", ".join(parts[:SHOWN_PARTS] + _more(len(parts) - SHOWN_PARTS))


def _more(count: int) -> list[str]:
    return [f"and {count} more"] if count > 0 else []


def _rate(value: float | None, unit: str) -> str:
    return "" if value is None else f"{value:.4g} {unit}"
