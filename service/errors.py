"""What can go wrong, in the service's own words.

Nothing here knows HTTP: `api/problems.py` holds the one table from these classes to statuses. Any room
may import this module; it imports none of them.

    StallbudgetError
    ├── Unsatisfiable         a spec that was read well and has no answer; names each field
    ├── UnreadableDocument    an upload that is no usable result; names the line or the pointer
    ├── NotFound              no such scenario, revision, run, …
    ├── DocumentRemoved       a run whose original is no longer kept
    ├── NameTaken             another scenario, or another workspace, has the name
    ├── Stale                 the resource changed since the caller read it
    ├── RunsExist             a scenario that still has runs was to be deleted
    ├── RunIdTaken            a DCP run_id was posted before with other bytes
    ├── KeyEnded              an API key that is revoked or has expired was to be rotated
    ├── KeyReused             an Idempotency-Key came with another request before
    ├── StillRunning          the request with the same Idempotency-Key is not done yet
    ├── RateLimited           a caller asks more often than it may
    ├── ShuttingDown          the process ends, and asks for no more work
    └── DatabaseUnavailable   the database does not answer, or is not at the migrations' head
"""

from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong with one place of what was sent.

    Attributes:
        pointer: Where: `#/cluster/gpus` for a body, a bare name for a parameter, `#` for the whole.
        code: A stable word for what is wrong, for programs.
        detail: What is wrong and what would be right, for people.
        line: The line of a text upload, counted from 1.
    """

    pointer: str
    code: str
    detail: str
    line: int | None = None


class StallbudgetError(Exception):
    """Anything that this service refuses or fails to do."""


class Unsatisfiable(StallbudgetError):
    """What was asked can be read, and has no answer.

    Args:
        faults: Every wrong field, with what would satisfy it.
    """

    def __init__(self, *faults: Fault) -> None:
        super().__init__("; ".join(fault.detail for fault in faults))
        self.faults = faults

    def below(self, place: str) -> Self:
        """Return the same of a body in which what was asked lies at a place, such as `#/spec`."""
        return type(self)(
            *(
                Fault(place + fault.pointer.removeprefix("#"), fault.code, fault.detail)
                for fault in self.faults
            )
        )


class UnreadableDocument(StallbudgetError):
    """An upload holds no usable result.

    Args:
        code: The format's own code where it has one (`duplicate_rank`), else ours (`no_results`).
        detail: One sentence: what is wrong, and what to post instead.
        line: The first bad line of a text, counted from 1.
        pointer: The first bad place of a JSON document (`#/operations/0/ranks/1`).

    Attributes:
        format: The format that it was read as; None where it was not recognised.
    """

    format: str | None = None

    def __init__(
        self, code: str, detail: str, *, line: int | None = None, pointer: str | None = None
    ) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.line = line
        self.pointer = pointer


class NotFound(StallbudgetError):
    """There is no such thing. The message says what was looked for."""


class DocumentRemoved(StallbudgetError):
    """The run is there, and its original document was removed for its age."""


class NameTaken(StallbudgetError):
    """Another scenario of the workspace, or another workspace, has this name."""


class Stale(StallbudgetError):
    """The resource is no longer at the revision that the caller named."""


class RunsExist(StallbudgetError):
    """The scenario has benchmark runs, and their deletion was not asked for."""


class RunIdTaken(StallbudgetError):
    """A DCP `run_id` that this scenario has already, with other bytes."""


class KeyEnded(StallbudgetError):
    """The API key is revoked or has expired, and another secret would not help it."""


class KeyReused(StallbudgetError):
    """An `Idempotency-Key` that came with another request before."""


class StillRunning(StallbudgetError):
    """The request with the same `Idempotency-Key` is still being answered."""


class RateLimited(StallbudgetError):
    """A caller asks more often than it may.

    Args:
        detail: Whose quota is used up, and for what.
        retry_after_seconds: After how many seconds it may ask again.
    """

    def __init__(self, detail: str, *, retry_after_seconds: int) -> None:
        super().__init__(detail)
        self.retry_after_seconds = retry_after_seconds


class ShuttingDown(StallbudgetError):
    """The process ends: what it works on it finishes, and new work belongs elsewhere."""


class DatabaseUnavailable(StallbudgetError):
    """The database does not answer, or its tables are not those of this version."""
