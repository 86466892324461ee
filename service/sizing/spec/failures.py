"""How often the job is interrupted."""

from collections.abc import Iterable
from typing import Annotated, Self

from pydantic import Field, model_validator

from service.errors import Fault
from service.sizing import presets
from service.sizing.spec.fields import PresetName, refuse, together
from service.wire import WHOLE, Absent, Incoming


class FailuresSpec(Incoming):
    """How often the job is interrupted: a `preset`, an observed record, or a mean time between failures."""

    preset: PresetName | Absent = None
    """A record of `GET /v1/presets/failure-records`."""
    observed_failures: Annotated[int, Field(strict=True, ge=0, le=10**9), WHOLE] | Absent = None
    """Unexpected interruptions that were counted."""
    observed_hours: Annotated[float, Field(strict=True, allow_inf_nan=False, ge=1e-3, le=1e8)] | Absent = None
    """How long they were counted. [h]"""
    observed_gpus: Annotated[int, Field(strict=True, ge=1, le=10**8), WHOLE] | Absent = None
    """On how many GPUs."""
    mtbf_hours: Annotated[float, Field(strict=True, allow_inf_nan=False, ge=1e-4, le=1e10)] | Absent = None
    """Mean time between failures, given directly. [h]"""
    mtbf_gpus: Annotated[int, Field(strict=True, ge=1, le=10**8), WHOLE] | Absent = None
    """The GPU count for which `mtbf_hours` holds (1: per GPU, 8: per node of 8); without it this cluster's."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        refuse(self._contradictions())
        return self

    def _contradictions(self) -> Iterable[Fault]:
        observed = ("observed_failures", "observed_hours", "observed_gpus")
        ways = (("preset",), observed, ("mtbf_hours", "mtbf_gpus"))
        given = [[name for name in way if getattr(self, name) is not None] for way in ways]
        known = presets.failure_records()
        if not any(given):
            yield Fault(
                "",
                "missing",
                "Give a preset, or observed_failures, observed_hours and observed_gpus, or mtbf_hours.",
            )
        if sum(map(bool, given)) > 1:
            for names in filter(None, given):
                yield Fault(
                    f"/{names[0]}",
                    "contradiction",
                    "Give one of preset, the observed record, and mtbf_hours; not several.",
                )
        yield from together(self, "An observed record", observed)
        if self.mtbf_gpus is not None and self.mtbf_hours is None:
            yield Fault(
                "/mtbf_hours",
                "missing",
                "mtbf_gpus says for how many GPUs mtbf_hours holds: give mtbf_hours.",
            )
        if self.observed_failures == 0:
            yield Fault(
                "/observed_failures",
                "no_failures",
                "A record without a failure gives only a lower bound of the time between failures, which is "
                "not served yet: give a longer record, or mtbf_hours.",
            )
        if self.preset is not None and self.preset not in known:
            yield Fault("/preset", "unknown_preset", f"The failure records are {', '.join(known)}.")
