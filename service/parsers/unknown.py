"""What a document that no parser recognises looks like, as a clause for the one who posted it.

It never quotes the document: it may hold anything.
"""

import re

from service.parsers.document import Document

_HEAD = 64_000
"""Characters that are looked at: what a file is shows early."""


def _converted(whose: str, trainer: str) -> str:
    return (
        f"it looks like {whose}, which no benchmark wrote; make it a document with "
        f"`stallbudget convert {trainer} FILE…` and post that"
    )


_KINDS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.MULTILINE), clause)
    for pattern, clause in (
        (
            r"^\s{0,20}<(?:!DOCTYPE|html|\?xml)",
            "it looks like a web page or XML; post the benchmark's own output",
        ),
        (
            r"^rank,items,rate-",
            "it looks like mdtest's details by rank, which do not say what was run; post what mdtest printed",
        ),
        (
            r"^\s{0,20}SUMMARY(?: rate| time)?(?: \(in .{1,20}\))?: \(of [0-9]",
            "it looks like a part of mdtest's output without the line `mdtest-… was launched with …` that begins "
            "it; post the whole",
        ),
        (
            r"^\[(?:ior|mdtest)-(?:easy|hard)",
            "it looks like a configuration or the result.txt of IO500; post its result_summary.txt",
        ),
        (
            r'"(?:save|load)_ckpt[0-9]{1,9}"\s?:',
            "it looks like one rank's times of a DLIO run; post the summary.json beside it, or make all its files one "
            "document with `stallbudget convert dlio FILE…`",
        ),
        (r"Global Checkpoint (?:Save|Load)\s{0,9}:", _converted("a log of NeMo", "nemo")),
        (
            r"\[titan\]|(?:Finished saving|Finished loading|Finished staging|Saving|Loading) the checkpoint",
            _converted("a log of torchtitan", "torchtitan"),
        ),
        (r"^\s{0,80}(?:save|load)-checkpoint \.{3}", _converted("Megatron-LM's timers", "megatron")),
        (
            r"[\"']func_name[\"']: {0,4}[\"'](?:save|load|async_save|write_data|read_data|stage_state_dict)",
            _converted("a log of torch's DCP logger", "torch-dcp-log"),
        ),
        (
            r'"(?:corrected_save_durations_s|throughput_mibs)"\s?:',
            _converted("a result of s3torchbenchmarking", "s3torchbenchmarking"),
        ),
        (
            r"^OPERATION\s{1,20}RESULT TYPE",
            "it looks like elbencho's table; run elbencho with --jsonfile FILE and post that file",
        ),
        (
            r'"(?:phase_type|last_done)"\s?:',
            "it looks like elbencho's JSON, but no line is one of its objects; post what --jsonfile wrote",
        ),
        (
            r'"(?:fio version|job options|client_stats)"\s?:',
            "it looks like a part of fio's JSON; post the whole document, as --output-format=json wrote it",
        ),
        (
            r"^(?:\S{1,80}: \(g=[0-9]|fio-[0-9]|[0-9];fio-[0-9]|\S{1,80}: \(groupid=[0-9]|Run status group [0-9])",
            "it looks like fio's text or terse output; run fio with --output-format=json and post that",
        ),
        (
            r"^\"?access\"?[;\t]\"?bw\(MiB/s\)",
            "it looks like IOR's CSV saved again with other separators; post the file as IOR wrote it",
        ),
        (
            r"^\s{0,40}access\s{1,20}bw\(MiB/s\)|^Summary of all tests:",
            "it looks like a part of IOR's output without the line `IOR-…: MPI Coordinated Test of "
            "Parallel I/O` that begins it; post the whole",
        ),
        (
            r"^(?:ior )?ERROR: .{0,400}\(\w{1,40}\.c:[0-9]",
            "it looks like an IOR run that ended with an error before it measured anything; cure that first",
        ),
        (
            r"MPI_INIT|MPI_Init|MPI_ABORT|mpirun|PMIx",
            "it looks like messages of an MPI launcher, without a benchmark's run",
        ),
        (
            r"SLURM_|^slurmstepd:|^srun:|^sbatch:",
            "it looks like a SLURM job's log, without a benchmark's run",
        ),
        (r"^#!", "it looks like a script; post what it prints"),
        (r"^%PDF|^{\\rtf", "it looks like a formatted document; post plain text"),
    )
)


_PREFIXED = re.compile(r"\s{0,99}\[[0-9]+(?:,[0-9]+)?\](?:<|:| )")
"""A line as `mpirun --tag-output` begins it."""


def looks_like(document: Document) -> str:
    """Return a clause on what the document seems to be, and what to do about it."""
    head = document.text[:_HEAD]
    for pattern, clause in _KINDS:
        if pattern.search(head):
            return clause
    value = document.json
    if isinstance(value, dict):
        return "it is JSON of an unknown kind, without the keys of any known benchmark's output"
    if isinstance(value, list):
        return "it is a JSON list, which no known benchmark writes; post the tool's own object"
    fault = document.json_fault
    # Many logs begin each line with [something].
    if (
        fault is not None
        and re.match(r"\s{0,99}(?:\{|\[\s{0,99}[\[\]{\"0-9-])", head)
        and not _PREFIXED.match(head)
    ):
        place = "" if fault.line is None else f" from line {fault.line} on"
        return f"it begins as JSON and cannot be read{place}; post it whole"
    return "it looks like plain text without a benchmark's results"
