"""What a document that no parser recognises looks like, as a sentence for the one who posted it.

The sentence never quotes the document: it may hold anything.
"""

import re

from service.parsers.document import Document

_HEAD = 64_000
"""Characters that are looked at: what a file is shows early."""

_KINDS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.MULTILINE), sentence)
    for pattern, sentence in (
        (
            r"^\s{0,20}<(?:!DOCTYPE|html|\?xml)",
            "It looks like a web page or XML; post the benchmark's own output.",
        ),
        (r"mdtest-\S{1,30} was launched with", "It looks like mdtest output, which is not read here."),
        (r"^rank,items,rate-", "It looks like mdtest's details by rank, which are not read here."),
        (r"^\[RESULT\]\s", "It looks like an IO500 summary, which is not read here."),
        (
            r"^OPERATION\s{1,20}RESULT TYPE",
            "It looks like elbencho's table; run elbencho with --jsonfile FILE and post that file.",
        ),
        (
            r'"(?:phase_type|last_done)"\s?:',
            "It looks like elbencho's JSON, but no line is one of its objects; post what --jsonfile wrote.",
        ),
        (
            r'"(?:fio version|job options|client_stats)"\s?:',
            "It looks like a part of fio's JSON; post the whole document, as --output-format=json wrote it.",
        ),
        (
            r"^(?:\S{1,80}: \(g=\d|fio-\d|\d;fio-\d|\S{1,80}: \(groupid=\d|Run status group \d)",
            "It looks like fio's text or terse output; run fio with --output-format=json and post that.",
        ),
        (
            r"^\s{0,40}access\s{1,20}bw\(MiB/s\)|^Summary of all tests:",
            "It looks like a part of IOR's output without the line `IOR-…: MPI Coordinated Test of "
            "Parallel I/O` that begins it; post the whole.",
        ),
        (
            r"^(?:ior )?ERROR: .{0,400}\(\w{1,40}\.c:\d",
            "It looks like an IOR run that ended with an error before it measured anything; cure that first.",
        ),
        (
            r"MPI_INIT|MPI_Init|MPI_ABORT|mpirun|PMIx",
            "It looks like messages of an MPI launcher, without an IOR run.",
        ),
        (r"SLURM_|^slurmstepd:|^srun:|^sbatch:", "It looks like a SLURM job's log, without an IOR run."),
        (r"^#!", "It looks like a script; post what it prints."),
        (r"^%PDF|^{\\rtf", "It looks like a formatted document; post plain text."),
    )
)


def looks_like(document: Document) -> str:
    """Return a sentence on what the document seems to be and what to do."""
    head = document.text[:_HEAD]
    for pattern, sentence in _KINDS:
        if pattern.search(head):
            return f"The document is of no known format. {sentence}"
    value = document.json
    if isinstance(value, dict):
        return "The document is JSON of an unknown kind: it has not the keys of any known benchmark's output."
    if isinstance(value, list):
        return "The document is a JSON list, which no known benchmark writes; post the tool's own object."
    fault = document.json_fault
    if fault is not None and head.lstrip()[:1] in ("{", "["):
        return (
            f"The document begins as JSON and cannot be read ({fault.detail}) nor recognised; post it whole."
        )
    return "The document is of no known format; it looks like plain text without a benchmark's results."
