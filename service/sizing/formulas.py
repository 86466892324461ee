"""The register of formulas: for each its id, what it is called, how it reads, where it comes from, its function.

`explain` reads it, and so does anyone who looks for a formula: the function named here is the only
definition. The inputs of an expression are the function's arguments.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from service.sizing import (
    bandwidth,
    capacity,
    checkpoint,
    cost,
    failures,
    goodput,
    interval,
    inverse,
    layout,
    recovery,
    restart,
    saves,
    staging,
    tiers,
    trainer,
)

ARTICLE_1 = '"Checkpoint Storage That Doesn\'t Stall Training"'
ARTICLE_2 = '"Checkpoint I/O Sizing: Write Bandwidth for 70B-405B"'
DEFINITION = "Definition"
CHECK_N_RUN = (
    "Eisenman et al., Check-N-Run, NSDI 22, section 4: a full checkpoint, and consecutive increments"
)
YOUNG = "J. W. Young, Communications of the ACM 17(9), 1974"
DALY = "J. T. Daly, Future Generation Computer Systems 22, 2006"
RENEWAL = "Renewal argument for exponential failures; with no durable lag the complete formula of " + DALY
STAGING = "A copy that does not fit its staging memory goes on as fast as that drains"
GEMINI = "Z. Wang et al., GEMINI, SOSP 2023, section 4"
TIERED = "Renewal argument for exponential failures, tier by tier; cf. A. Moody et al., SCR, SC10"
GARWOOD = "F. Garwood, Biometrika 28(3/4), 1936: exact Poisson limits"
KOKOLIS = "Kokolis et al., arXiv:2410.21680"
SERIES = "Any one part stops the node, and constant rates add up: Barlow and Proschan, 1965"


@dataclass(frozen=True, slots=True)
class Formula:
    """One formula of the engine.

    Attributes:
        id: Stable name; an explanation carries it.
        expression: The formula in the names of its inputs.
        source: Where it comes from.
        function: Its one definition, taking the inputs by keyword.
    """

    id: str
    expression: str
    source: str
    function: Callable[..., float]


def given(**inputs: float) -> float:
    """Return the one input: a figure that the spec states, or that another figure is."""
    (value,) = inputs.values()
    return value


def total(**parts: float) -> float:
    """Return the sum of the parts."""
    return sum(parts.values())


def solved(**inputs: float) -> float:
    """Return the first input: a value that was searched for; the others say where the search ended."""
    return next(iter(inputs.values()))


def ratio(**inputs: float) -> float:
    """Return the first input over the second."""
    part, whole = inputs.values()
    return part / whole


def difference(**inputs: float) -> float:
    """Return the first input less the second."""
    larger, smaller = inputs.values()
    return larger - smaller


def drive_space_fraction(
    *, node_bytes: float, replicas: int, versions: int, drives_per_node: int, drive_bytes: float
) -> float:
    """Return the part of a node's drives that a tier takes."""
    held = tiers.held_bytes(node_bytes=node_bytes, replicas=replicas, versions=versions)
    return held / (drives_per_node * drive_bytes)


def counted(**inputs: float) -> float:
    """Return the parameters of a kind: of each sort of layer times its number, and those outside the layers."""
    found = inputs.get("parameters_outside_layers", 0.0)
    for name, layers in inputs.items():
        if name.startswith("layers_"):
            found += layers * inputs["parameters_per_layer_" + name.removeprefix("layers_")]
    return found


def adapter_parameters(*, lora_rank: int, matrix_sides: int) -> float:
    """Return the parameters of low-rank adapters: two factors of a rank for each matrix."""
    return lora_rank * matrix_sides


def checkpoint_bytes_itemised(
    *,
    reduction_factor: float = 1.0,
    compression_factor: float = 1.0,
    deduplication_factor: float = 1.0,
    extra_bytes: float = 0.0,
    extra_bytes_per_rank: float = 0.0,
    gpus: float = 0.0,
    **items: float,
) -> float:
    """Return what a full save writes of an itemised state. [B]"""
    return checkpoint.written_bytes(
        state_bytes=sum(items.values()),
        written_fraction=reduction_factor * compression_factor * deduplication_factor,
        extra_bytes=extra_bytes + extra_bytes_per_rank * gpus,
    )


def product(**inputs: float) -> float:
    """Return the product of the inputs."""
    return math.prod(inputs.values())


def node_mtbf_of_components(**inputs: float) -> float:
    """Return the mean time between failures of a node from `<component>.per_node` and `<component>.mtbf_hours`. [s]"""
    return failures.node_mtbf_of_components(
        (value, inputs[f"{name.rpartition('.')[0]}.mtbf_hours"])
        for name, value in inputs.items()
        if name.endswith(".per_node")
    )


def stall(*, overhead_fraction: float, interval_seconds: float) -> float:
    """Return the blocking time that is a fraction of the interval. [s]"""
    return overhead_fraction * interval_seconds


def stall_usd_per_day(
    *, cluster_usd_per_hour: float, blocking_seconds: float, interval_seconds: float, effective_seconds: float
) -> float:
    """Return the cost of stalls where each save also waits for the one before it. [USD/day]"""
    return cost.stall_usd_per_day(
        cluster_usd_per_hour=cluster_usd_per_hour,
        blocking_seconds=blocking_seconds + (effective_seconds - interval_seconds),
        interval_seconds=effective_seconds,
    )


def restart_with_load(*, restart_seconds: float, specified_load_seconds: float, load_seconds: float) -> float:
    """Return the restart time with another load in it. [s]"""
    return restart_seconds - specified_load_seconds + load_seconds


def tier_levels(inputs: Mapping[str, float]) -> list[tiers.Level]:
    """Return the levels that inputs such as `host_memory.blocking_seconds` describe, in their order."""
    found: dict[str, dict[str, float]] = {}
    for name, value in inputs.items():
        kind, _, field = name.partition(".")
        found.setdefault(kind, {})[field] = value
    return [
        tiers.Level(
            saves=int(level.get("saves_per_shared_save", 1)),
            blocking_seconds=level.get("blocking_seconds", 0.0),
            durable_lag_seconds=level.get("durable_lag_seconds", 0.0),
            fallback_fraction=level.get("fallback_fraction", 0.0),
            restart_seconds=level.get("restart_seconds", 0.0),
        )
        for level in found.values()
    ]


def fallback_fraction(**inputs: float) -> float:
    """Return the failures that fall back to a tier, from three inputs for each kind of failure in turn."""
    values = list(inputs.values())
    return tiers.fallback_fraction(
        failure_fractions=values[0::3],
        survival_fractions=values[1::3],
        nearer_survival_fractions=values[2::3],
    )


def tiered_fraction(
    *,
    shared_saves_per_failure: float,
    seconds_per_shared_save: float,
    mtbf_seconds: float,
    mean_restart_seconds: float,
) -> float:
    """Return the part of the wall time that so many seconds in each period of shared storage are."""
    alive = mtbf_seconds / (mtbf_seconds + mean_restart_seconds)
    return alive / mtbf_seconds * shared_saves_per_failure * seconds_per_shared_save


_EXACT = (
    "exp(-(restart_seconds + durable_lag_seconds)/mtbf_seconds) / (exp(interval_seconds/mtbf_seconds) - 1)"
)
_OUTAGE = (
    "mtbf_seconds * ln((interval_seconds - blocking_seconds)"
    " / (goodput_fraction * mtbf_seconds * (exp(interval_seconds/mtbf_seconds) - 1)))"
)
_STALL = (
    "interval_seconds - goodput_fraction * mtbf_seconds * (exp(interval_seconds/mtbf_seconds) - 1)"
    " * exp((restart_seconds{lag})/mtbf_seconds)"
)
_COLLIDING = (
    "exp(-(restart_seconds + interval_seconds - [one buffer: blocking_seconds])/mtbf_seconds)"
    " / (exp(effective_interval_seconds/mtbf_seconds) - 1)"
)

_BUFFERED = (
    "(C * q/(1 - q) + q**m * (d - r + d * q/(1 - q))) * exp(-(restart_seconds + T)/M) / M with C blocking_seconds, "
    "T interval_seconds, M mtbf_seconds, P effective_interval_seconds, q = exp(-P/M), d = P - T, "
    "a = (staging_buffers - 1) * T - C, r = a mod d, m = (a - r)/d + 1"
)

REGISTER = {
    formula.id: formula
    for formula in (
        Formula("given", "as given", "The spec", given),
        Formula("same", "the figure named", DEFINITION, given),
        Formula("sum", "the sum of the parts", DEFINITION, total),
        Formula("ratio", "the first / the second", DEFINITION, ratio),
        Formula("product", "the product of the parts", DEFINITION, product),
        Formula(
            "checkpoint_bytes",
            "parameters * bytes_per_parameter * reduction_factor + extra_bytes",
            "Rajbhandari et al., ZeRO, SC20, section 3.1; " + ARTICLE_2,
            checkpoint.checkpoint_bytes,
        ),
        Formula(
            "checkpoint_bytes_itemised",
            "the items of the state added up, times reduction_factor, compression_factor and deduplication_factor "
            "where given, + extra_bytes + extra_bytes_per_rank * gpus",
            "The recipe; " + ARTICLE_2,
            checkpoint_bytes_itemised,
        ),
        Formula(
            "counted",
            "layers_1 * parameters_per_layer_1 + layers_2 * parameters_per_layer_2 + parameters_outside_layers",
            "The model's shape; a term that the model does not have is left out",
            counted,
        ),
        Formula(
            "adapter_parameters",
            "lora_rank * matrix_sides",
            "Hu et al., LoRA, arXiv:2106.09685: two factors of the rank, as long as the matrix's rows and columns",
            adapter_parameters,
        ),
        Formula(
            "state_item_bytes", "parameters * bytes_per_parameter", DEFINITION, checkpoint.state_item_bytes
        ),
        Formula(
            "difference_bytes",
            "max(state_bytes * compression_factor * differential_fraction + extra_bytes, 1)",
            CHECK_N_RUN,
            saves.difference_bytes,
        ),
        Formula(
            "mean_save_bytes",
            "(checkpoint_bytes + (full_every - 1) * difference_bytes) / full_every",
            CHECK_N_RUN,
            saves.mean_save_bytes,
        ),
        Formula(
            "longest_chain_bytes",
            "checkpoint_bytes + (full_every - 1) * difference_bytes",
            CHECK_N_RUN,
            saves.longest_chain_bytes,
        ),
        Formula(
            "mean_chain_bytes",
            "checkpoint_bytes + (full_every - 1) / 2 * difference_bytes",
            CHECK_N_RUN,
            saves.mean_chain_bytes,
        ),
        Formula(
            "whole_bytes",
            "state_bytes * compression_factor + extra_bytes",
            "A restore needs all of it, whichever save wrote it",
            saves.whole_bytes,
        ),
        Formula(
            "restored_read_bytes",
            "restored_bytes * read_amplification",
            ARTICLE_2,
            lambda *, restored_bytes, read_amplification: bandwidth.read_bytes(
                checkpoint_bytes=restored_bytes, read_amplification=read_amplification
            ),
        ),
        Formula(
            "kept_chain_bytes",
            "(F * checkpoint_bytes + (n - F) * difference_bytes) * (1 + protection_fraction), "
            "n = copies + full_every - 1 saves, F = ceil(n / full_every) of them full",
            "At worst the whole run before the oldest copy is kept for its sake",
            saves.kept_chain_bytes,
        ),
        Formula(
            "kept_shared_bytes",
            "(restored_bytes + (copies - 1) * checkpoint_bytes) * (1 + protection_fraction)",
            "The oldest copy is there as a whole, and of each later one what it wrote",
            saves.kept_shared_bytes,
        ),
        Formula(
            "chain_copies_that_fit",
            "max(n - full_every, 0), n the saves that fit of runs of a full one and full_every - 1 differences",
            "One copy is in flight, and the run before the oldest one is kept",
            saves.chain_copies_that_fit,
        ),
        Formula(
            "shared_copies_that_fit",
            "max(floor((usable_bytes - restored_bytes) / checkpoint_bytes), 0)",
            "One copy is in flight, and the oldest one is there as a whole",
            saves.shared_copies_that_fit,
        ),
        Formula(
            "chain_peak_fraction",
            "kept_chain_bytes / usable_bytes",
            "Usable space is after protection, and one copy is in flight",
            lambda *, usable_bytes, **chain: (
                saves.kept_chain_bytes(protection_fraction=0.0, **chain) / usable_bytes
            ),
        ),
        Formula(
            "shared_peak_fraction",
            "kept_shared_bytes / usable_bytes",
            "Usable space is after protection, and one copy is in flight",
            lambda *, usable_bytes, **shared: (
                saves.kept_shared_bytes(protection_fraction=0.0, **shared) / usable_bytes
            ),
        ),
        Formula(
            "chain_seconds_until_full",
            "n * interval_seconds, n the saves that fit of runs of a full one and full_every - 1 differences",
            "Nothing is deleted",
            lambda *, interval_seconds, **chain: saves.chain_saves_that_fit(**chain) * interval_seconds,
        ),
        Formula(
            "shared_seconds_until_full",
            "(1 + floor((usable_bytes - restored_bytes) / checkpoint_bytes)) * interval_seconds, 0 where not one fits",
            "Nothing is deleted",
            lambda *, interval_seconds, **shared: saves.shared_saves_that_fit(**shared) * interval_seconds,
        ),
        Formula("node_count", "ceil(gpus / gpus_per_node)", DEFINITION, checkpoint.node_count),
        Formula("spread_nodes", "min(nodes, writers)", DEFINITION, checkpoint.spread_nodes),
        Formula("even_share", "checkpoint_bytes / holders", ARTICLE_2, checkpoint.even_share),
        Formula("placed", "as the rule places it", layout.MEGATRON, given),
        Formula(
            "share_bytes",
            "tensor_bytes / tensor_ways + whole_bytes / whole_ways + expert_bytes / expert_ways, where there are any",
            layout.ZERO,
            layout.share_bytes,
        ),
        Formula(
            "rank_bytes",
            "own_bytes + the sum of weight_*_bytes / weight_*_ways and optimiser_*_bytes / optimiser_*_ways for tensor,"
            " whole and expert, as far as there are any",
            layout.ZERO,
            layout.rank_bytes,
        ),
        Formula(
            "held_parameters",
            "tensor_parameters / tensor + whole_parameters + expert_parameters / (expert * expert_tensor), the last"
            " where there are experts",
            layout.MEGATRON,
            layout.held_parameters,
        ),
        Formula("rank_count", "tensor * pipeline * data", layout.MEGATRON, layout.rank_count),
        Formula("data_degree", "gpus / (tensor * pipeline)", layout.MEGATRON, layout.data_degree),
        Formula(
            "data_on_fewer",
            "floor(gpus / (tensor * pipeline * data_step)) * data_step",
            layout.MEGATRON,
            layout.data_on_fewer,
        ),
        Formula("largest_shard", "checkpoint_bytes / writers * skew", ARTICLE_2, checkpoint.largest_shard),
        Formula(
            "file_count",
            "writers * files_per_writer + 1",
            "PyTorch Distributed Checkpoint",
            checkpoint.file_count,
        ),
        Formula(
            "observed_mtbf",
            "observed_hours * 3600 / observed_failures * observed_gpus / gpus",
            ARTICLE_1,
            failures.observed_mtbf,
        ),
        Formula("scaled_mtbf", "mtbf_hours * 3600 * mtbf_gpus / gpus", ARTICLE_1, failures.scaled_mtbf),
        Formula(
            "mtbf_low",
            "mtbf_seconds * observed_failures / gamma_quantile(1 - (1 - confidence_fraction)/2, observed_failures + 1)",
            GARWOOD,
            failures.mtbf_low,
        ),
        Formula(
            "mtbf_high",
            "mtbf_seconds * observed_failures / gamma_quantile((1 - confidence_fraction)/2, observed_failures)",
            GARWOOD,
            failures.mtbf_high,
        ),
        Formula(
            "bound_of_no_failures",
            "observed_hours * 3600 * observed_gpus / gpus / -log(1 - confidence_fraction)",
            GARWOOD + ", one-sided, for a count of 0",
            failures.bound_of_no_failures,
        ),
        Formula(
            "node_mtbf_of_components",
            "3600 / the sum of per_node / mtbf_hours over the components",
            SERIES,
            node_mtbf_of_components,
        ),
        Formula(
            "component_share",
            "per_node / mtbf_hours * node_mtbf_seconds / 3600",
            SERIES,
            failures.component_share,
        ),
        Formula(
            "node_mtbf_of_rate",
            "1000 * 86400 / rate_per_1000_node_days",
            KOKOLIS,
            failures.node_mtbf_of_rate,
        ),
        Formula("mtbf_of_nodes", "node_mtbf_seconds / nodes", SERIES, failures.mtbf_of_nodes),
        Formula(
            "early_life_mtbf",
            "settled_mtbf_seconds / early_life_factor",
            "Clusters fail more often at first: Schroeder and Gibson, DSN 2006. The factor is the spec's",
            failures.early_life_mtbf,
        ),
        Formula("failures_per_day", "86400 / mtbf_seconds", DEFINITION, failures.failures_per_day),
        Formula(
            "rate_by_node",
            "1000 * 86400 / mtbf_seconds / nodes",
            KOKOLIS,
            lambda **inputs: 1000.0 * failures.failures_per_node_day(**inputs),
        ),
        Formula(
            "planned_per_day",
            "observed_planned / observed_hours * 24",
            DEFINITION,
            failures.planned_per_day,
        ),
        Formula(
            "planned_fraction",
            "planned_per_day * restart_seconds / 86400",
            "A planned stop saves first: it costs the way back, and no work",
            failures.planned_fraction,
        ),
        Formula(
            "young_interval", "sqrt(2 * blocking_seconds * mtbf_seconds)", YOUNG, interval.young_interval
        ),
        Formula(
            "daly_interval",
            "sqrt(2 C M) * (1 + sqrt(C/2M)/3 + (C/2M)/9) if C < 2M else M + C, C blocking_seconds, M mtbf_seconds",
            DALY,
            interval.daly_interval,
        ),
        Formula(
            "exact_interval",
            "C + M * (1 + W0(-exp(-1 - C/M))), W0 Lambert's function, C blocking_seconds, M mtbf_seconds",
            RENEWAL,
            interval.exact_interval,
        ),
        Formula(
            "best_interval",
            "max(exact_interval, min(durable_lag_seconds + [one buffer: blocking_seconds], "
            "blocking_seconds + mtbf_seconds))",
            RENEWAL + "; its optimum where saves wait for each other",
            interval.best_interval,
        ),
        Formula(
            "young_interval_at_overhead",
            "2 * overhead_fraction * mtbf_seconds",
            YOUNG + ", with the blocking time a fraction of the interval",
            interval.young_interval_at_overhead,
        ),
        Formula(
            "daly_interval_at_overhead",
            "the interval at which the rule daly gives back blocking_seconds = overhead_fraction * interval",
            DALY,
            interval.daly_interval_at_overhead,
        ),
        Formula(
            "exact_interval_at_overhead",
            "the interval at which the rule exact gives back blocking_seconds = overhead_fraction * interval",
            RENEWAL,
            interval.exact_interval_at_overhead,
        ),
        Formula(
            "effective_interval",
            "max(interval_seconds, durable_lag_seconds + [one buffer: blocking_seconds])",
            "Drains are serial, and a save needs a free staging buffer",
            goodput.effective_interval,
        ),
        Formula("stall", "overhead_fraction * interval_seconds", DEFINITION, stall),
        Formula(
            "sync_write_bandwidth",
            "checkpoint_bytes / blocking_seconds / 1e9",
            ARTICLE_2,
            bandwidth.sync_write_bandwidth,
        ),
        Formula(
            "minimum_persist_bandwidth",
            "checkpoint_bytes / interval_seconds / 1e9",
            ARTICLE_2,
            bandwidth.minimum_persist_bandwidth,
        ),
        Formula(
            "strict_persist_bandwidth",
            "checkpoint_bytes / (interval_seconds - [one buffer: blocking_seconds]) / 1e9",
            "A drain has to end before its buffer is needed again",
            bandwidth.strict_persist_bandwidth,
        ),
        Formula(
            "persist_bandwidth",
            "checkpoint_bytes / interval_seconds * headroom / 1e9",
            ARTICLE_2,
            bandwidth.persist_bandwidth,
        ),
        Formula(
            "persist_bandwidth_for_lag",
            "max(checkpoint_bytes / interval_seconds * headroom, checkpoint_bytes / durable_lag_seconds) / 1e9",
            ARTICLE_2,
            bandwidth.persist_bandwidth_for_lag,
        ),
        Formula(
            "persist_bandwidth_for_stall",
            "max(checkpoint_bytes / interval_seconds * headroom, checkpoint_bytes / drain_limit_seconds) / 1e9",
            f"{ARTICLE_2}; {STAGING}",
            bandwidth.persist_bandwidth_for_stall,
        ),
        Formula("durable_lag", "interval_seconds / headroom", ARTICLE_2, bandwidth.durable_lag),
        Formula("read_bytes", "checkpoint_bytes * read_amplification", ARTICLE_2, bandwidth.read_bytes),
        Formula("read_bandwidth", "read_bytes / target_seconds / 1e9", ARTICLE_2, bandwidth.read_bandwidth),
        Formula("share", "total_gb_per_second / holders", DEFINITION, bandwidth.share),
        Formula(
            "shard_bandwidth",
            "largest_shard_bytes / window_seconds / 1e9",
            ARTICLE_2,
            bandwidth.shard_bandwidth,
        ),
        Formula(
            "largest_node_bandwidth",
            "total_gb_per_second * (largest_node_bytes / total_bytes)",
            DEFINITION,
            bandwidth.largest_node_bandwidth,
        ),
        Formula("create_rate", "files / window_seconds", ARTICLE_2, bandwidth.create_rate),
        Formula(
            "largest_node_share",
            "min(checkpoint_bytes / min(nodes, writers) * skew, checkpoint_bytes)",
            "Upper bound: every rank of the node holds the largest shard",
            checkpoint.largest_node_share,
        ),
        Formula(
            "staging_bytes",
            "min(checkpoint_bytes / min(nodes, writers) * skew, checkpoint_bytes) * staging_buffers",
            ARTICLE_2,
            lambda *, checkpoint_bytes, nodes, writers, skew, staging_buffers: bandwidth.staging_bytes(
                node_bytes=checkpoint.largest_node_share(
                    checkpoint_bytes=checkpoint_bytes, nodes=nodes, writers=writers, skew=skew
                ),
                staging_buffers=staging_buffers,
            ),
        ),
        Formula(
            "serial_stall",
            "copy_seconds + max(node_share_bytes - staging_budget_bytes, 0) / (drain_gb_per_second * 1e9)",
            STAGING,
            staging.serial_stall,
        ),
        Formula(
            "overlapped_stall",
            "max(copy_seconds, (node_share_bytes - staging_budget_bytes) / (drain_gb_per_second * 1e9))",
            STAGING,
            staging.overlapped_stall,
        ),
        Formula(
            "serial_stall_in_force",
            "max(allowed_seconds, serial_stall)",
            STAGING,
            lambda *, allowed_seconds, **inputs: max(allowed_seconds, staging.serial_stall(**inputs)),
        ),
        Formula(
            "overlapped_stall_in_force",
            "max(allowed_seconds, overlapped_stall)",
            STAGING,
            lambda *, allowed_seconds, **inputs: max(allowed_seconds, staging.overlapped_stall(**inputs)),
        ),
        Formula(
            "serial_drain_limit",
            "(allowed_seconds - copy_seconds) * node_share_bytes / (node_share_bytes - staging_budget_bytes)",
            STAGING,
            staging.serial_drain_limit,
        ),
        Formula(
            "overlapped_drain_limit",
            "allowed_seconds * node_share_bytes / (node_share_bytes - staging_budget_bytes)",
            STAGING,
            staging.overlapped_drain_limit,
        ),
        Formula(
            "interval_of_wait",
            "spared_seconds / waiting_fraction",
            "Where a wait that grows with the interval has used up what the rest of the stall leaves it",
            staging.interval_of_wait,
        ),
        Formula(
            "serial_lag",
            "min(node_share_bytes, staging_budget_bytes) / (drain_gb_per_second * 1e9)",
            STAGING,
            staging.serial_lag,
        ),
        Formula(
            "overlapped_lag",
            "max(node_share_bytes / (drain_gb_per_second * 1e9) - staging_stall_seconds, 0)",
            STAGING,
            staging.overlapped_lag,
        ),
        Formula(
            "transfer_time",
            "max(total_bytes / (total_gb_per_second * 1e9), node_bytes / (node_gb_per_second * 1e9), "
            "files / file_creates_per_second), each where its limit is known",
            "The slowest limit sets the time; creates are taken to overlap with the data",
            lambda **inputs: (
                bandwidth.transfer_time(
                    **{"total_gb_per_second": None, "node_gb_per_second": None, **inputs}
                ).seconds
            ),
        ),
        Formula(
            "kept_bytes",
            "copies * checkpoint_bytes * (1 + protection_fraction)",
            ARTICLE_2,
            capacity.kept_bytes,
        ),
        Formula(
            "peak_bytes",
            "(copies + 1) * checkpoint_bytes * (1 + protection_fraction)",
            "The copies kept, and the one being written",
            capacity.peak_bytes,
        ),
        Formula(
            "copies_that_fit",
            "max(floor(usable_bytes / checkpoint_bytes) - 1, 0)",
            "Usable space is after protection, and one copy is in flight",
            capacity.copies_that_fit,
        ),
        Formula(
            "peak_fraction",
            "(copies + 1) * checkpoint_bytes / usable_bytes",
            "Usable space is after protection, and one copy is in flight",
            lambda *, copies, checkpoint_bytes, usable_bytes: (
                capacity.peak_bytes(checkpoint_bytes=checkpoint_bytes, copies=copies, protection_fraction=0.0)
                / usable_bytes
            ),
        ),
        Formula(
            "seconds_until_full",
            "floor(usable_bytes / checkpoint_bytes) * interval_seconds",
            "Nothing is deleted",
            capacity.seconds_until_full,
        ),
        Formula("tb_to_bytes", "usable_tb * 1e12", DEFINITION, lambda *, usable_tb: usable_tb * 1e12),
        *(
            Formula(
                f"exact_{part}",
                f"{weight} / mtbf_seconds * {_EXACT}",
                RENEWAL,
                lambda part=part, **inputs: getattr(goodput.exact_goodput(**inputs), part),
            )
            for part, weight in (
                ("goodput", "(interval_seconds - blocking_seconds)"),
                ("saving", "blocking_seconds"),
            )
        ),
        *(
            Formula(
                f"colliding_{part}",
                f"{weight} / mtbf_seconds * {_COLLIDING}",
                RENEWAL,
                lambda part=part, **inputs: getattr(goodput.exact_goodput_when_saves_collide(**inputs), part),
            )
            for part, weight in (
                ("goodput", "(interval_seconds - blocking_seconds)"),
                ("saving", "(effective_interval_seconds - interval_seconds + blocking_seconds)"),
            )
        ),
        Formula(
            "exact_restarting",
            "1 - exp(-restart_seconds / mtbf_seconds)",
            RENEWAL,
            lambda *, restart_seconds, mtbf_seconds: (
                goodput.exact_goodput(
                    interval_seconds=mtbf_seconds,
                    blocking_seconds=0.0,
                    restart_seconds=restart_seconds,
                    durable_lag_seconds=0.0,
                    mtbf_seconds=mtbf_seconds,
                ).restarting
            ),
        ),
        Formula(
            "exact_lost_work",
            f"exp(-restart_seconds/mtbf_seconds) - interval_seconds / mtbf_seconds * {_EXACT}",
            RENEWAL + "; what is left of the time beside useful work, saving and restarting",
            lambda **inputs: goodput.exact_goodput(**inputs).lost_work,
        ),
        Formula(
            "colliding_lost_work",
            f"exp(-restart_seconds/mtbf_seconds) - effective_interval_seconds / mtbf_seconds * {_COLLIDING}",
            RENEWAL + "; what is left of the time beside useful work, saving and restarting",
            lambda **inputs: goodput.exact_goodput_when_saves_collide(**inputs).lost_work,
        ),
        *(
            Formula(
                f"{name}_waste",
                f"1 - {name}_goodput, as the sum of saving, lost work and restarting",
                RENEWAL,
                lambda split=split, **inputs: sum(split(**inputs)[1:]),
            )
            for name, split in (
                ("exact", goodput.exact_goodput),
                ("colliding", goodput.exact_goodput_when_saves_collide),
            )
        ),
        Formula(
            "effective_training_time_ratio",
            "1 - nodes * failures_per_node_day * (restart_seconds + interval_seconds / 2) / 86400",
            KOKOLIS + ": 1 - n r (u0 + q + dt/2), with u0 and q in the restart",
            goodput.effective_training_time_ratio,
        ),
        Formula(
            "buffered_saving",
            _BUFFERED,
            RENEWAL + "; durable saves are waited for once training has run ahead by every buffer",
            lambda **inputs: goodput.exact_goodput_when_saves_collide(**inputs).saving,
        ),
        Formula(
            "buffered_lost_work",
            "exp(-restart_seconds/mtbf_seconds) - colliding_goodput - buffered_saving",
            RENEWAL + "; what is left of the time beside useful work, saving and restarting",
            lambda **inputs: goodput.exact_goodput_when_saves_collide(**inputs).lost_work,
        ),
        Formula(
            "first_order_lost_work",
            "interval_seconds / 2 / mtbf_seconds",
            ARTICLE_1,
            lambda *, interval_seconds, mtbf_seconds: (
                goodput.first_order_waste(
                    interval_seconds=interval_seconds,
                    blocking_seconds=0.0,
                    restart_seconds=0.0,
                    mtbf_seconds=mtbf_seconds,
                ).lost_work
            ),
        ),
        Formula("cluster_usd_per_hour", "gpus * gpu_hour_usd", ARTICLE_1, cost.cluster_usd_per_hour),
        Formula(
            "stall_usd_per_day",
            "86400 / interval_seconds * blocking_seconds * cluster_usd_per_hour / 3600",
            ARTICLE_1,
            cost.stall_usd_per_day,
        ),
        Formula(
            "colliding_stall_usd_per_day",
            "86400 / effective_seconds * (blocking_seconds + (effective_seconds - interval_seconds))"
            " * cluster_usd_per_hour / 3600",
            ARTICLE_1 + ", with the wait for the save before",
            stall_usd_per_day,
        ),
        Formula("usd_per_year_from_day", "usd_per_day * 365", DEFINITION, cost.usd_per_year_from_day),
        Formula(
            "wasted_usd_per_year",
            "lost_fraction * cluster_usd_per_hour * 8760",
            DEFINITION,
            cost.wasted_usd_per_year,
        ),
        Formula(
            "space_usd_per_month",
            "space_bytes / 1e12 * usd_per_tb_month",
            DEFINITION,
            cost.space_usd_per_month,
        ),
        Formula("difference", "the first - the second", DEFINITION, difference),
        Formula(
            "nested_saves",
            "next_saves * max(1, round(next_interval_seconds / interval_seconds))",
            "A tier saves with every save of the next one",
            tiers.nested_saves,
        ),
        Formula(
            "tier_young_interval",
            "sqrt(2 * blocking_seconds * mtbf_seconds / fallback_fraction)",
            YOUNG + ", for the failures that fall back to the tier",
            tiers.tier_young_interval,
        ),
        Formula(
            "shared_stall",
            "blocking_seconds + effective_seconds - interval_seconds",
            "Each save waits for the one before it",
            tiers.shared_stall,
        ),
        Formula(
            "shared_lag",
            "interval_seconds - [one buffer: blocking_seconds]",
            RENEWAL,
            tiers.shared_lag,
        ),
        Formula(
            "copies_lag",
            "node_bytes * copies / (node_write_gb_per_second * 1e9)",
            DEFINITION,
            tiers.durable_lag,
        ),
        Formula(
            "node_write_rate",
            "node_bytes * copies / durable_lag_seconds / 1e9",
            DEFINITION,
            tiers.node_write_rate,
        ),
        Formula(
            "group_survival",
            "1 if lost_nodes < replicas, else sum over i of (-1)**i * C(g, i) * C(nodes - i*replicas, lost_nodes - "
            "i*replicas) / C(nodes, lost_nodes), g = nodes/replicas; where that is not whole the last replicas + nodes "
            "mod replicas nodes form a ring",
            GEMINI,
            recovery.survival_fraction,
        ),
        Formula(
            "fallback_fraction",
            "sum over the kinds of failure of failure_fraction * max(survival_fraction - nearer_survival_fraction, 0)",
            "A failure falls back to the nearest tier that survives it",
            fallback_fraction,
        ),
        Formula("held_bytes", "node_bytes * replicas * versions", GEMINI, tiers.held_bytes),
        Formula("peer_bytes", "checkpoint_bytes * (replicas - 1)", GEMINI, tiers.peer_bytes),
        Formula(
            "written_tb_per_day",
            "node_bytes * replicas * (86400 / interval_seconds) / 1e12",
            DEFINITION,
            tiers.written_tb_per_day,
        ),
        Formula(
            "drive_writes_per_day",
            "written_tb_per_day * 1e12 / (drives_per_node * drive_bytes)",
            "JEDEC JESD218: a drive write is its capacity",
            tiers.drive_writes_per_day,
        ),
        Formula(
            "drive_space_fraction",
            "node_bytes * replicas * versions / (drives_per_node * drive_bytes)",
            DEFINITION,
            drive_space_fraction,
        ),
        Formula(
            "shared_saves_per_failure",
            "A * d / F of the farthest tier; from tier to tier A and F of a stretch between saves become those of the "
            "next by entering stretch after stretch: A * (B + d) / W of the lives pass, F * (B + d) / W more end, "
            "W = (F + A) * B + d * A; d = sum of fallback_fraction * exp(-durable_lag_seconds/mtbf_seconds) over the "
            "tiers so far, B the failures that fall back farther; the first stretch has A = exp(-t/mtbf_seconds), "
            "F = 1 - A, t = (period_seconds - stalls) / its saves + its stall",
            TIERED,
            lambda *, period_seconds, mtbf_seconds, **levels: tiers.saves_per_failure(
                tier_levels(levels), period_seconds=period_seconds, mtbf_seconds=mtbf_seconds
            ),
        ),
        Formula(
            "restart_per_failure",
            "the mean over the tiers of the restart that each failure begins; one that a failure cuts short begins "
            "again, from a farther tier where that is needed; for one tier mtbf_seconds * (exp(restart_seconds / "
            "mtbf_seconds) - 1)",
            TIERED,
            lambda *, mtbf_seconds, **levels: tiers.mean_restart_seconds(
                tier_levels(levels), mtbf_seconds=mtbf_seconds
            ),
        ),
        Formula(
            "tiered_goodput",
            "shared_saves_per_failure * (period_seconds - sum of saves_per_shared_save * blocking_seconds)"
            " / (mtbf_seconds + mean_restart_seconds)",
            TIERED,
            lambda *, shared_saves_per_failure, period_seconds, mtbf_seconds, mean_restart_seconds, **levels: (
                tiered_fraction(
                    shared_saves_per_failure=shared_saves_per_failure,
                    seconds_per_shared_save=tiers.useful_seconds(
                        tier_levels(levels), period_seconds=period_seconds
                    ),
                    mtbf_seconds=mtbf_seconds,
                    mean_restart_seconds=mean_restart_seconds,
                )
            ),
        ),
        Formula(
            "tiered_saving",
            "shared_saves_per_failure * (sum of saves_per_shared_save * blocking_seconds)"
            " / (mtbf_seconds + mean_restart_seconds)",
            TIERED,
            lambda *, shared_saves_per_failure, mtbf_seconds, mean_restart_seconds, **levels: tiered_fraction(
                shared_saves_per_failure=shared_saves_per_failure,
                seconds_per_shared_save=sum(
                    level.saves * level.blocking_seconds for level in tier_levels(levels)
                ),
                mtbf_seconds=mtbf_seconds,
                mean_restart_seconds=mean_restart_seconds,
            ),
        ),
        Formula(
            "tiered_lost_work",
            "(mtbf_seconds - shared_saves_per_failure * period_seconds) / (mtbf_seconds + mean_restart_seconds)",
            TIERED,
            tiers.lost_work_fraction,
        ),
        Formula(
            "tiered_restarting",
            "mean_restart_seconds / (mtbf_seconds + mean_restart_seconds)",
            TIERED,
            lambda *, mtbf_seconds, mean_restart_seconds: (
                mean_restart_seconds / (mtbf_seconds + mean_restart_seconds)
            ),
        ),
        Formula(
            "tiered_first_order",
            "sum of saves_per_shared_save * blocking_seconds / period_seconds + sum of fallback_fraction * "
            "(period_seconds / saves_per_shared_save / 2 + durable_lag_seconds + restart_seconds) / mtbf_seconds",
            ARTICLE_1 + ", tier by tier and with the durable lag",
            lambda *, period_seconds, mtbf_seconds, **levels: tiers.first_order_waste(
                tier_levels(levels), period_seconds=period_seconds, mtbf_seconds=mtbf_seconds
            ),
        ),
        Formula(
            "spares_exhausted",
            "node_loss_fraction * P(N >= spare_nodes), N a Poisson number of mean "
            "node_loss_fraction * repair_hours * 3600 / mtbf_seconds",
            "L. Takacs, Introduction to the Theory of Queues, 1962: nodes in repair as the queue M/G/infinity",
            restart.spares_exhausted,
        ),
        Formula(
            "mean_reschedule",
            "reschedule_seconds * (1 - spares_exhausted_fraction)"
            " + reschedule_without_spares_seconds * spares_exhausted_fraction",
            DEFINITION,
            restart.mean_reschedule,
        ),
        Formula(
            "restart_with_spares",
            "other_parts_seconds + mean_reschedule for spares_exhausted",
            DEFINITION,
            restart.restart_with_spares,
        ),
        Formula(
            "replay",
            "mtbf_seconds - interval_seconds * exp(-durable_lag_seconds/mtbf_seconds)"
            " / (exp(interval_seconds/mtbf_seconds) - 1)",
            RENEWAL + "; its lost work by failure",
            restart.replay,
        ),
        Formula(
            "colliding_replay",
            "mtbf_seconds * colliding_lost_work without a restart, with more buffers buffered_lost_work",
            RENEWAL + "; its lost work by failure",
            restart.replay_when_saves_collide,
        ),
        Formula(
            "interval_steps",
            "max(1, round((interval_seconds - blocking_seconds) / step_seconds))",
            DEFINITION,
            trainer.interval_steps,
        ),
        Formula(
            "interval_of_steps",
            "interval_steps * step_seconds + blocking_seconds",
            DEFINITION,
            trainer.interval_of_steps,
        ),
        Formula("writing_ranks", "ceil(writers / nodes)", DEFINITION, trainer.writing_ranks),
        Formula(
            "writer_threads",
            "max(1, ceil(node_gb_per_second / (thread_gb_per_second * writing_ranks)))",
            ARTICLE_2,
            trainer.writer_threads,
        ),
        Formula(
            "threads_of_a_node",
            "threads * writing_ranks",
            DEFINITION,
            lambda *, threads, writing_ranks: threads * writing_ranks,
        ),
        Formula(
            "restart_with_load",
            "restart_seconds - specified_load_seconds + load_seconds",
            "The restart includes its load",
            restart_with_load,
        ),
        Formula(
            "goodput_for_waste",
            "1 - waste_usd_per_year / (cluster_usd_per_hour * 8760)",
            DEFINITION,
            inverse.goodput_for_waste,
        ),
        Formula(
            "restart_for_goodput",
            f"{_OUTAGE} - durable_lag_seconds",
            RENEWAL + ", solved for the restart",
            inverse.restart_for_goodput,
        ),
        Formula(
            "blocking_for_goodput",
            _STALL.format(lag=" + durable_lag_seconds"),
            RENEWAL + ", solved for the blocking time",
            inverse.blocking_for_goodput,
        ),
        Formula(
            "sync_write_for_goodput",
            f"checkpoint_bytes / ({_STALL.format(lag='')}) / 1e9",
            RENEWAL + ", solved for the blocking time",
            inverse.sync_write_for_goodput,
        ),
        Formula(
            "async_write_for_goodput",
            f"checkpoint_bytes / ({_OUTAGE} - restart_seconds) / 1e9",
            RENEWAL + ", solved for the durable lag",
            inverse.async_write_for_goodput,
        ),
        Formula(
            "read_for_goodput",
            f"read_bytes / ({_OUTAGE} - durable_lag_seconds - other_restart_seconds) / 1e9",
            RENEWAL + ", solved for the load in the restart",
            inverse.read_for_goodput,
        ),
        Formula(
            "read_for_restart",
            "read_bytes / (restart_seconds - other_restart_seconds) / 1e9",
            "The restart includes its load",
            inverse.read_for_restart,
        ),
        Formula(
            "solved",
            "the first, at which the sizing gives the second, and the second reaches the third",
            "A bracket of sizings, narrowed until its ends lie within 1e-10 of each other",
            solved,
        ),
        Formula(
            "solved_count",
            "the first, the last count at which the sizing gives the second, and the second reaches the third",
            "Sizings of ever closer counts",
            solved,
        ),
        Formula(
            "end_of_range",
            "the end of what the field takes, or keeps to the stall allowed, at which the sizing gives the second",
            "The bounds of a spec's fields",
            solved,
        ),
        Formula(
            "nearest",
            "the first, at which the sizing gives the others: the end of what the field takes, or the best in it",
            "Where the goal is missed by least",
            solved,
        ),
    )
}
