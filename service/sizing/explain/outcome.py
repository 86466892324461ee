"""How goodput and dollars came about: of the sizing, and of what a storage system delivers."""

from service.sizing import presets
from service.sizing.explain.lines import EXPONENTIAL, Facts, Lines
from service.sizing.failures import failures_per_node_day
from service.sizing.sizing import Cost, Goodput, Interval


def explain_goodput(
    lines: Lines,
    job: Facts,
    at: str,
    block: Goodput,
    interval: Interval,
    blocking_seconds: float,
    restart_seconds: float,
    durable_lag_seconds: float,
) -> None:
    """Explain a goodput block: of the sizing, or of what is delivered."""
    mtbf = {"mtbf_seconds": job.mtbf_seconds}
    restart = {"restart_seconds": restart_seconds, **mtbf}
    exact = f"{at}/goodput/exact"
    inputs = {"interval_seconds": interval.seconds, "blocking_seconds": blocking_seconds, **restart}
    if interval.effective_seconds is not None:
        inputs |= {
            "effective_interval_seconds": interval.effective_seconds,
            "staging_buffers": job.buffers,
        }
        prefix = "colliding"
    else:
        inputs["durable_lag_seconds"] = durable_lag_seconds
        prefix = "exact"
    lines.add(f"{exact}/goodput_fraction", f"{prefix}_goodput", inputs, EXPONENTIAL)
    split = "buffered" if prefix == "colliding" and job.buffers > 1 else prefix
    lines.add(f"{exact}/saving_fraction", f"{split}_saving", inputs, EXPONENTIAL)
    lines.add(f"{exact}/lost_work_fraction", f"{split}_lost_work", inputs, EXPONENTIAL)
    lines.add(f"{exact}/restarting_fraction", "exact_restarting", restart, EXPONENTIAL)
    nodes = job.sizing.checkpoint.nodes
    lines.add(
        f"{at}/goodput/effective_training_time_ratio",
        "effective_training_time_ratio",
        {
            "nodes": nodes,
            "failures_per_node_day": failures_per_node_day(mtbf_seconds=job.mtbf_seconds, nodes=nodes),
            "restart_seconds": restart_seconds,
            "interval_seconds": interval.effective_seconds or interval.seconds,
        },
        "Saves stop nothing and are durable at once, nothing fails during a restart, and a failure strikes in the "
        "middle of an interval, on average.",
    )
    first = f"{at}/goodput/first_order"
    small = "Interval and restart are small beside the time between failures."
    lines.add(
        f"{first}/waste_fraction",
        "sum",
        {
            "saving_fraction": block.first_order.saving_fraction,
            "lost_work_fraction": block.first_order.lost_work_fraction,
            "restarting_fraction": block.first_order.restarting_fraction,
        },
        small,
    )
    lines.add(
        f"{first}/saving_fraction",
        "ratio",
        {"blocking.seconds": blocking_seconds, "interval.seconds": interval.seconds},
        small,
    )
    lines.add(
        f"{first}/lost_work_fraction",
        "first_order_lost_work",
        {"interval_seconds": interval.seconds, **mtbf},
        "A failure strikes in the middle of an interval, on average.",
    )
    lines.add(
        f"{first}/restarting_fraction",
        "ratio",
        {"restart.seconds": restart_seconds, "mtbf_seconds": job.mtbf_seconds},
        small,
    )


def explain_cost(
    lines: Lines,
    job: Facts,
    at: str,
    block: Cost,
    goodput: Goodput,
    interval: Interval,
    blocking_seconds: float,
) -> None:
    """Explain a cost block: of the sizing, or of what is delivered."""
    prices, cluster, space = job.spec.prices, job.spec.cluster, job.sizing.capacity
    if block.cluster_usd_per_hour is not None:
        price = prices.gpu_hour_usd if prices is not None else None
        source = None
        if price is None:
            preset = presets.gpus()[str(cluster.gpu_preset)]
            price, source = preset.gpu_hour_usd, preset.source
        hourly = {"cluster_usd_per_hour": block.cluster_usd_per_hour}
        lines.add(
            f"{at}/cost/cluster_usd_per_hour",
            "cluster_usd_per_hour",
            {"gpus": cluster.gpus, "gpu_hour_usd": price},
            "The price of the GPU preset." if source else None,
            source,
        )
        stalled = {**hourly, "blocking_seconds": blocking_seconds, "interval_seconds": interval.seconds}
        if interval.effective_seconds is not None:
            stalled["effective_seconds"] = interval.effective_seconds
        lines.add(
            f"{at}/cost/stall_usd_per_day",
            "stall_usd_per_day" if interval.effective_seconds is None else "colliding_stall_usd_per_day",
            stalled,
            "Nothing fails.",
        )
        lines.add(
            f"{at}/cost/stall_usd_per_year", "usd_per_year_from_day", {"usd_per_day": block.stall_usd_per_day}
        )
        parts = ("saving", "lost_work", "restarting")
        fractions = {part: getattr(goodput.exact, f"{part}_fraction") for part in parts}
        for name, fraction in {"waste": sum(fractions.values()), **fractions}.items():
            lines.add(
                f"{at}/cost/{name}_usd_per_year",
                "wasted_usd_per_year",
                {"lost_fraction": fraction, **hourly},
                EXPONENTIAL,
            )
    if prices is not None and space is not None:
        for tier in ("hot", "cold"):
            if getattr(block, f"{tier}_usd_per_month") is not None:
                lines.add(
                    f"{at}/cost/{tier}_usd_per_month",
                    "space_usd_per_month",
                    {
                        "space_bytes": getattr(space, f"{tier}_peak_bytes"),
                        "usd_per_tb_month": getattr(prices, f"{tier}_usd_per_tb_month"),
                    },
                    "The space of the copy in flight is paid for as well.",
                )
