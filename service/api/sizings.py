"""`POST /v1/sizings`: size a scenario spec. Stateless: nothing is stored, the same spec gives the same bytes."""

from typing import Annotated

from fastapi import APIRouter, Body, Query

from service.api.access import needs
from service.api.bodies import ComputingRoute
from service.api.examples import SPECS
from service.api.problems import describes
from service.sizing.size import size
from service.sizing.sizing import Sizing
from service.sizing.spec import ScenarioSpec
from service.store.caller import AccessScope

router = APIRouter(prefix="/v1/sizings", tags=["sizings"], route_class=ComputingRoute)

Explain = Annotated[
    bool, Query(description="Add `explanation`: for each figure its formula, inputs, assumption and source.")
]


@router.post("", response_model_exclude_none=True, responses=describes(400, 406, 413, 415, 422))
@needs(AccessScope.READ)
async def create_sizing(
    spec: Annotated[ScenarioSpec, Body(openapi_examples=SPECS)],
    explain: Explain = False,
) -> Sizing:
    """Size a scenario: what it asks of its storage, what goodput follows, and what it costs. Nothing is stored."""
    return size(spec, explained=explain)
