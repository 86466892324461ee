"""`POST /v1/solutions`: the engine turned around, from a goal to the quantity that reaches it. Nothing is stored."""

from typing import Annotated

from fastapi import APIRouter, Body

from service.api.access import needs
from service.api.bodies import ComputingRoute
from service.api.examples import QUESTIONS
from service.api.problems import describes
from service.api.sizings import Explain
from service.sizing.solution import Solution
from service.sizing.solve import solve
from service.sizing.spec import SolutionQuestion
from service.store.caller import AccessScope

router = APIRouter(prefix="/v1/solutions", tags=["solutions"], route_class=ComputingRoute)


@router.post("", response_model_exclude_none=True, responses=describes(400, 406, 413, 415, 422))
@needs(AccessScope.READ)
async def create_solution(
    question: Annotated[SolutionQuestion, Body(openapi_examples=QUESTIONS)],
    explain: Explain = False,
) -> Solution:
    """Find what one quantity of a scenario has to be to reach a goal.

    Where nothing does, the answer says how near it comes and what would. Nothing is stored.
    """
    return solve(question, explained=explain)
