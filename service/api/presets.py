"""`GET /v1/presets/…`: named inputs, each with its source."""

from fastapi import APIRouter

from service.api.access import needs
from service.api.bodies import StrictRoute
from service.api.problems import describes
from service.sizing import presets
from service.sizing.presets import FailureRecord, GpuPreset, ModelPreset
from service.store.caller import AccessScope
from service.wire import Outgoing

router = APIRouter(prefix="/v1/presets", tags=["presets"], route_class=StrictRoute)


class ModelPresetList(Outgoing):
    """All models that a spec can name."""

    items: list[ModelPreset]


class FailureRecordList(Outgoing):
    """All failure records that a spec can name."""

    items: list[FailureRecord]


class GpuPresetList(Outgoing):
    """All GPUs that a spec can name."""

    items: list[GpuPreset]


@router.get("/models", response_model_exclude_none=True, responses=describes(406, 422))
@needs(AccessScope.READ)
async def list_model_presets() -> ModelPresetList:
    """List the models by name, with their parameter counts and where these come from."""
    return ModelPresetList(items=list(presets.models().values()))


@router.get("/failure-records", response_model_exclude_none=True, responses=describes(406, 422))
@needs(AccessScope.READ)
async def list_failure_records() -> FailureRecordList:
    """List the published failure records by name, with what each counts and where it was published."""
    return FailureRecordList(items=list(presets.failure_records().values()))


@router.get("/gpus", response_model_exclude_none=True, responses=describes(406, 422))
@needs(AccessScope.READ)
async def list_gpu_presets() -> GpuPresetList:
    """List the GPUs by name, with the price and the host memory that they stand for."""
    return GpuPresetList(items=list(presets.gpus().values()))
