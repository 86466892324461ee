"""What the blocks of a spec share: bounded quantities, and how a block refuses what contradicts itself."""

from collections.abc import Iterable
from typing import Annotated

from pydantic import Field
from pydantic_core import PydanticCustomError

from service.errors import Fault
from service.wire import WHOLE, Incoming

Seconds = Annotated[float, Field(strict=True, allow_inf_nan=False, ge=0, le=1e7)]
"""A duration that may be nothing. [s]"""


PositiveSeconds = Annotated[float, Field(strict=True, allow_inf_nan=False, ge=1e-6, le=1e7)]
"""A duration that takes at least a microsecond. [s]"""


Count = Annotated[int, Field(strict=True, ge=1, le=10_000_000), WHOLE]


PresetName = Annotated[str, Field(strict=True, min_length=1, max_length=64)]


def refuse(faults: Iterable[Fault]) -> None:
    """Raise one validation error that carries every fault, with pointers relative to this block."""
    found = tuple(faults)
    if found:
        raise PydanticCustomError(
            "contradiction", "{sentence}", {"sentence": found[0].detail, "faults": found}
        )


def together(block: Incoming, wanted: str, names: tuple[str, ...]) -> Iterable[Fault]:
    """Yield a fault for each of the fields that is absent while others of them are given."""
    given = [name for name in names if getattr(block, name) is not None]
    if given:
        for name in names:
            if name not in given:
                yield Fault(f"/{name}", "missing", f"{wanted} also needs {name}, beside {', '.join(given)}.")
