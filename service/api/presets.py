"""`GET /v1/presets/…`: named inputs, each with its source."""

from fastapi import APIRouter

from service.api.access import needs
from service.api.bodies import StrictRoute
from service.api.problems import describes
from service.sizing import presets
from service.sizing.presets import FailureRecord, GpuPreset, ModelPreset, Recipe, SaveLoadTimes, StorageSystem
from service.store.caller import AccessScope
from service.wire import Outgoing

router = APIRouter(prefix="/v1/presets", tags=["presets"], route_class=StrictRoute)


class ModelPresetList(Outgoing):
    """All models that a spec can name."""

    items: list[ModelPreset]


class RecipeList(Outgoing):
    """All recipes that a spec can name."""

    items: list[Recipe]


class FailureRecordList(Outgoing):
    """All failure records that a spec can name."""

    items: list[FailureRecord]


class GpuPresetList(Outgoing):
    """All GPUs that a spec can name."""

    items: list[GpuPreset]


class SaveLoadTimesList(Outgoing):
    """Measured times of saves and loads."""

    items: list[SaveLoadTimes]


class StorageSystemList(Outgoing):
    """Published storage systems; those with sustained figures can be named by a spec."""

    items: list[StorageSystem]


@router.get("/models", response_model_exclude_none=True, responses=describes(406, 422))
@needs(AccessScope.READ)
async def list_model_presets() -> ModelPresetList:
    """List the models by name, with their shapes, the parameters that follow, and where the shapes come from."""
    return ModelPresetList(items=list(presets.models().values()))


@router.get("/recipes", response_model_exclude_none=True, responses=describes(406, 422))
@needs(AccessScope.READ)
async def list_recipes() -> RecipeList:
    """List what a checkpoint may hold of a model's state by name, item by item, and where the items come from."""
    return RecipeList(items=list(presets.recipes().values()))


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


@router.get("/save-load-times", response_model_exclude_none=True, responses=describes(406, 422))
@needs(AccessScope.READ)
async def list_save_load_times() -> SaveLoadTimesList:
    """List how long saves and loads of real jobs took, as published: what to hold a target against."""
    return SaveLoadTimesList(items=list(presets.save_load_times().values()))


@router.get("/storage-systems", response_model_exclude_none=True, responses=describes(406, 422))
@needs(AccessScope.READ)
async def list_storage_systems() -> StorageSystemList:
    """List published storage systems, sustained figures and peaks apart; `storage.preset` takes the sustained ones."""
    return StorageSystemList(items=list(presets.storage_systems().values()))
