"""How each figure of a sizing came about: its formula, inputs, assumption and source, figure by figure.

Nothing is computed here. A line names a formula of the register and the numbers that go into it, and a test
evaluates every line and holds it against the figure.
"""

from service.sizing.explain.contents import (
    explain_capacity,
    explain_checkpoint,
    explain_host_memory,
    explain_read_bytes,
    explain_trainer,
)
from service.sizing.explain.delivered import explain_delivered
from service.sizing.explain.interruptions import (
    explain_failures,
    explain_planned,
    explain_restart,
    explain_uncertainty,
)
from service.sizing.explain.layout import explain_layout, explain_read_amplification
from service.sizing.explain.lines import EVEN, LAST_NODE_FULL, Facts, Lines
from service.sizing.explain.model import explain_model
from service.sizing.explain.outcome import explain_cost, explain_goodput
from service.sizing.explain.saving import explain_blocking, explain_interval, explain_write
from service.sizing.explain.targets import explain_targets
from service.sizing.operation import Job
from service.sizing.sizing import Explanation, Sizing
from service.sizing.spec import DEFAULT_HEADROOM, SaveMode


def explain(sized: Job, sizing: Sizing) -> list[Explanation]:
    """Return a line for every number in the sizing of a job, in the order of the answer."""
    lines = Lines()
    spec = sized.spec
    nodes = sizing.checkpoint.nodes
    known = sized.placement is not None or not spec.shards.even
    job = Facts(
        spec=spec,
        sizing=sizing,
        skew=sized.skew,
        even=None if known else EVEN,
        node_share_bytes=sized.node_share_bytes,
        read_amplification=sized.read_amplification,
        node_read_bytes=sized.node_read_bytes,
        placement=sized.placement,
        headroom=spec.save.headroom or DEFAULT_HEADROOM,
        buffers=spec.save.staging_buffers or 1,
        is_async=spec.save.mode is SaveMode.ASYNC,
        mtbf_seconds=sizing.failures.mtbf_seconds,
        saved=sized.saved,
    )
    explain_model(lines, job)
    explain_checkpoint(lines, job)
    explain_layout(lines, job)
    explain_failures(lines, job)
    explain_interval(
        lines,
        job,
        "#",
        sizing.interval,
        sizing.blocking.seconds,
        sizing.write.durable_lag_seconds,
    )
    explain_blocking(lines, job)
    explain_restart(lines, job)
    explain_write(lines, job)
    window = sizing.write.window_seconds(sizing.blocking)
    if spec.restore is not None and sizing.read is not None:
        explain_read_bytes(lines, job)
        explain_read_amplification(lines, job)
        lines.add(
            "#/read/required_gb_per_second",
            "read_bandwidth",
            {
                "read_bytes": job.saved.restored_bytes * job.read_amplification,
                "target_seconds": spec.restore.target_seconds,
            },
        )
        lines.add(
            "#/read/per_node_gb_per_second",
            "share",
            {"total_gb_per_second": sizing.read.required_gb_per_second, "holders": nodes},
            LAST_NODE_FULL,
        )
        if sizing.read.largest_node_gb_per_second is not None:
            lines.add(
                "#/read/largest_node_gb_per_second",
                "largest_node_bandwidth",
                {
                    "total_gb_per_second": sizing.read.required_gb_per_second,
                    "total_bytes": job.saved.full_bytes * job.read_amplification,
                    "largest_node_bytes": job.node_read_bytes,
                },
                "The node with most is the one of the layout, whatever part of a checkpoint is read.",
            )
    files = {"files": sizing.checkpoint.files}
    lines.add("#/metadata/creates_per_save", "same", files)
    lines.add("#/metadata/creates_per_second", "create_rate", {**files, "window_seconds": window})
    lines.add(
        "#/metadata/deletes_per_interval",
        "same",
        files,
        "Retention is full: each save replaces an older one.",
    )
    explain_host_memory(lines, job)
    explain_capacity(lines, job)
    explain_trainer(lines, job)
    explain_goodput(
        lines,
        job,
        "#",
        sizing.goodput,
        sizing.interval,
        sizing.blocking.seconds,
        sizing.restart.seconds,
        sizing.write.durable_lag_seconds or 0.0,
    )
    explain_uncertainty(lines, job)
    explain_planned(lines, job)
    if sizing.cost is not None:
        explain_cost(lines, job, "#", sizing.cost, sizing.goodput, sizing.interval, sizing.blocking.seconds)
    explain_targets(lines, job)
    explain_delivered(lines, job)
    if sizing.tiers is not None:  # few scenarios have tiers: their module is read when one does
        from service.sizing.explain.tiers import explain_tiers

        explain_tiers(lines, job)
    return lines
