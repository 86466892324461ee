"""ScenarioSpec: what goes in. Pydantic, and the wire model too: there is no second definition.

Bounds are generous but finite, so that no formula overflows within them. A block refuses what
contradicts itself; `ScenarioSpec` refuses what needs two blocks to see.
"""

from service.sizing.spec.cluster import ClusterSpec, ShardsSpec
from service.sizing.spec.failures import FailingComponent, FailuresSpec
from service.sizing.spec.model import DEFAULT_BYTES_PER_PARAMETER, LoraTarget, ModelSpec
from service.sizing.spec.parallelism import ParallelismSpec
from service.sizing.spec.question import SolutionGoal, SolutionQuestion, SolutionUnknown
from service.sizing.spec.restart import RestartSpec, RestoreSpec
from service.sizing.spec.save import DEFAULT_HEADROOM, IntervalRule, IntervalSpec, SaveMode, SaveSpec
from service.sizing.spec.scenario import ScenarioSpec
from service.sizing.spec.storage import PricesSpec, RetentionSpec, StorageSpec
from service.sizing.spec.tiers import FailureKind, FailureShareSpec, TierKind, TierSpec

__all__ = [
    "DEFAULT_BYTES_PER_PARAMETER",
    "DEFAULT_HEADROOM",
    "ClusterSpec",
    "FailingComponent",
    "FailureKind",
    "FailureShareSpec",
    "FailuresSpec",
    "IntervalRule",
    "IntervalSpec",
    "LoraTarget",
    "ModelSpec",
    "ParallelismSpec",
    "PricesSpec",
    "RestartSpec",
    "RestoreSpec",
    "RetentionSpec",
    "SaveMode",
    "SaveSpec",
    "ScenarioSpec",
    "ShardsSpec",
    "SolutionGoal",
    "SolutionQuestion",
    "SolutionUnknown",
    "StorageSpec",
    "TierKind",
    "TierSpec",
]
