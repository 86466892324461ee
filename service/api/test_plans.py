"""`GET /v1/scenarios/{scenario_id}/test-plan`: the tests that settle a scenario, as JSON, a page, or a script."""

import re
from ipaddress import IPv6Address
from typing import Annotated, Any
from urllib.parse import urlsplit

from fastapi import APIRouter, Header, Query, Request, Response
from pydantic import AfterValidator

from service.api.access import needs
from service.api.benchmark_runs import StorageLabel
from service.api.bodies import StrictRoute, accepts
from service.api.dependencies import DIGITS, ScenarioId, UseDatabase, UseSettings, UseWorkspaceId
from service.api.problems import Refused, describes, summary
from service.api.rates import Budget, spends
from service.api.scenarios import sizing_of
from service.errors import Fault
from service.planning import markdown, script
from service.planning.plan import plan
from service.planning.planned import Launcher, TestPlan
from service.store import scenarios
from service.store.caller import AccessScope

router = APIRouter(tags=["test-plans"], route_class=StrictRoute)

JSON = "application/json"
TEXTS = {
    "text/markdown": ("A page to read and to hand on.", markdown.markdown, ""),
    "text/x-shellscript": ("A script for `sh`.", script.shell, ".sh"),
    "application/x-slurm": ("A batch file for `sbatch`; its launcher is srun.", script.slurm, ".sbatch"),
}
"""The forms beside JSON: what each is, what makes it, how its file's name ends."""
SLURM = "application/x-slurm"

_ADDRESS = r"^https?://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(:[0-9]{1,5})?(/[A-Za-z0-9._~%+-]+)*/?$"
"""An address without user, query or anything that would mean something elsewhere."""
_ADDRESS_BYTES = 500

PlanNodes = Annotated[
    int | None,
    Query(ge=1, le=10_000_000, description="How many nodes can be spared; all of the scenario's without it."),
    DIGITS,
]
Directory = Annotated[
    str | None,
    Query(
        min_length=1,
        max_length=512,
        pattern=r"^/[^\x00-\x1f\x7f@]*$",
        description="An absolute path on the storage under test, without an @, which the benchmarks take for a border "
        "between two paths. Without it the shell's variable STALLBUDGET_DIRECTORY says where.",
    ),
]


def _is_address(url: str) -> bool:
    """Return whether something can be posted there: not on port 70000, nor at [1.2.3.4]."""
    if len(url) > _ADDRESS_BYTES or not re.fullmatch(_ADDRESS, url):
        return False
    try:
        place = urlsplit(url)
        if place.netloc.startswith("["):
            IPv6Address(place.hostname or "")
        return place.port != 0
    except ValueError:
        return False


def _leads_somewhere(url: str | None) -> str | None:
    if url is not None and not _is_address(url):
        raise ValueError("give an address such as https://host.example:8000 or http://[::1]:8000")
    return url


Url = Annotated[
    str | None,
    AfterValidator(_leads_somewhere),
    Query(
        max_length=_ADDRESS_BYTES,
        pattern=_ADDRESS,
        description="Where the results are to be posted; without it the address that this request went to.",
    ),
]
StartedBy = Annotated[
    Launcher | None,
    Query(description="What starts the ranks; `mpirun` without it, and always `srun` in a batch file."),
]
Accept = Annotated[str | None, Header(include_in_schema=False)]

ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The plan, in the form that `Accept` asks for: JSON, "
        + "; ".join(f"`{name}`: {text[0].removesuffix('.')}" for name, text in TEXTS.items())
        + ".",
        "content": {name: {"schema": {"type": "string"}} for name in TEXTS},
    }
}


@router.get(
    "/v1/scenarios/{scenario_id}/test-plan",
    response_model_exclude_none=True,
    responses={**ANSWERS, **describes(404, 406, 422, 503)},
)
@needs(AccessScope.READ)
@spends(Budget.COMPUTING)
def get_test_plan(
    scenario_id: ScenarioId,
    request: Request,
    response: Response,
    database: UseDatabase,
    workspace_id: UseWorkspaceId,
    settings: UseSettings,
    nodes: PlanNodes = None,
    storage_label: StorageLabel = None,
    directory: Directory = None,
    url: Url = None,
    launcher: StartedBy = None,
    accept: Accept = None,
) -> TestPlan:
    """Plan the tests that show whether a storage system does what the scenario needs.

    Each with its commands, its size, and the figure that it must reach. On fewer nodes than the scenario's the plan
    says what it can no longer prove.
    """
    media_type = _preferred(accept)
    if media_type == SLURM and launcher is Launcher.MPIRUN:
        fault = Fault(
            "launcher", "contradiction", "A Slurm batch file starts its ranks by srun; leave launcher out."
        )
        raise Refused("invalid-request", summary([fault]), fault)
    with database.read() as transaction:
        scenario = scenarios.get(transaction, workspace_id=workspace_id, id=scenario_id)
    planned = plan(
        spec=scenario.spec,
        sizing=sizing_of(scenario.spec),
        scenario_id=scenario.id,
        scenario_revision=scenario.revision,
        name=scenario.name,
        url=url if url is not None else _own_address(request),
        nodes=nodes,
        storage_label=storage_label,
        directory=directory,
        launcher=launcher or (Launcher.SRUN if media_type == SLURM else Launcher.MPIRUN),
        full_scale_low_fraction=settings.full_scale_low_fraction,
    )
    # The address of the request is in the answer.
    headers = {"Vary": "Accept, Host", "X-Content-Type-Options": "nosniff"}
    if media_type == JSON:
        response.headers.update(headers)
        return planned
    _, written, suffix = TEXTS[media_type]
    if suffix:
        headers["Content-Disposition"] = f'attachment; filename="{planned.folder}{suffix}"'
    return Response(written(planned), media_type=media_type, headers=headers)  # type: ignore[return-value]


def _preferred(accept: str | None) -> str:
    """Return the form that the caller prefers; JSON where it does not matter to him."""
    forms = (JSON, *TEXTS)
    return max(forms, key=lambda form: accepts(accept, form)) if accept else JSON


def _own_address(request: Request) -> str:
    """Return the address that the request went to, as its Host header says; refuse one that is none."""
    address = str(request.base_url)
    if not _is_address(address):
        fault = Fault(
            "url", "missing", "The Host header holds no address that results could be posted to; give url."
        )
        raise Refused("invalid-request", summary([fault]), fault)
    return address
