"""`job_results.json` of awslabs' s3torchbenchmarking, from its benchmark of DCP saves.

`corrected_save_durations_s` has `world_size` entries for each epoch, in the order in which ranks were done, so
which rank a time is of is not known. `throughput_mibs` is the model's size over one of these times: the entry's own
or, in some versions, the longest of all.
"""

import math
import statistics
from collections.abc import Sequence
from typing import Any

from service.parsers.dlio_stats import loose_json
from service.parsers.trainer_logs import SAVE, Json, LogFile, Reading, Stated, Unconvertible, seconds
from service.units import MIB

SAME_SIZE_FRACTION = 1e-6
"""Every entry gives the same size, but for rounding."""


def read(files: Sequence[LogFile], stated: Stated) -> Reading:
    """Return the saves of one job, one for each epoch.

    Raises:
        Unconvertible: The file is not of this tool, or its entries are not those of whole epochs.
    """
    if len(files) != 1:
        raise Unconvertible("A job_results.json is one run; convert one at a time.")
    file = files[0]
    results = loose_json(file)
    config = results.get("config") if isinstance(results.get("config"), dict) else {}
    assert isinstance(config, dict)  # noqa: S101 - as the line above sees to
    metrics = results.get("metrics")
    listed = metrics.get("corrected_save_durations_s") if isinstance(metrics, dict) else None
    if not isinstance(metrics, dict) or not isinstance(listed, list):
        raise file.refusal(
            "#/metrics/corrected_save_durations_s",
            "There is no list of save durations; older versions of the tool wrote statistics in its place.",
        )
    place = "#/metrics/corrected_save_durations_s"
    durations = [
        seconds(_number(value, file, f"{place}/{at}"), file, f"{place}/{at}", zero=False)
        for at, value in enumerate(listed)
    ]
    world_size = _count(config, "world_size", file)
    ranks = world_size or stated.world_size
    notes: list[str] = []
    size = _model_bytes(metrics.get("throughput_mibs"), durations, file)
    if size is None:
        notes.append(
            f"{file.name}: throughput_mibs does not give one size of the model, so bytes are left out."
        )
    operations = []
    settings = _settings(config)
    if ranks is not None:
        epochs = _count(config, "epochs", file)
        if (
            not durations
            or len(durations) % ranks
            or (epochs is not None and len(durations) != epochs * ranks)
        ):
            of = "" if epochs is None else f"{epochs} epochs of "
            raise file.refusal(place, f"{len(durations)} entries are not {of}{ranks} ranks.")
        operations = [
            _operation(durations[at : at + ranks], size, settings) for at in range(0, len(durations), ranks)
        ]
    torch_version = _torch_version(results)
    synced = "sync_files" in settings or _storage(config) == "s3"
    return Reading(
        # Whether a file was synced, some versions leave to torch and others do not: where the file is silent, so
        # must the document be, in which torch's silence means yes.
        checkpointer="torch.distributed.checkpoint" if synced else "s3torchbenchmarking",
        software={
            **({"trainer": "s3torchbenchmarking"} if synced else {}),
            **({"checkpointer_version": torch_version} if synced and torch_version else {}),
            **_backend(config),
        },
        operations=operations,
        world_size=world_size,
        notes=notes,
    )


def _operation(durations: Sequence[float], size: int | None, settings: Json) -> Json:
    mean = min(max(statistics.fmean(durations), min(durations)), max(durations))
    times = {"min": min(durations), "mean": mean, "max": max(durations)}
    operation: Json = {"op": SAVE}
    if size is not None:
        operation |= {"bytes_total": size}
    if settings:
        operation["settings"] = settings
    return operation | {"summary": {"ranks_reporting": len(durations), "total_seconds": times}}


def _model_bytes(rates: object, durations: Sequence[float], file: LogFile) -> int | None:
    """Return the bytes of the model that the rates tell, if they tell one size."""
    if not isinstance(rates, list) or len(rates) != len(durations) or not rates:
        return None
    place = "#/metrics/throughput_mibs"
    mib = [float(_number(value, file, f"{place}/{at}")) for at, value in enumerate(rates)]
    longest = max(durations)
    for sizes in (
        [rate * own for rate, own in zip(mib, durations, strict=True)],
        [rate * longest for rate in mib],
    ):
        least, most = min(sizes), max(sizes)
        if least > 0 and most - least <= SAME_SIZE_FRACTION * most and most < 2**53 / MIB:
            return round(statistics.median(sizes) * MIB)
    return None


def _number(value: Any, file: LogFile, place: str) -> str:  # noqa: ANN401 - whatever JSON holds
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise file.refusal(place, f"{str(value)[:40]} is no number.")
    return repr(value)


def _count(config: Json, name: str, file: LogFile) -> int | None:
    value = config.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 10_000_000:
        raise file.refusal(f"#/config/{name}", f"{str(value)[:40]} is no count.")
    return value


def _settings(config: Json) -> Json:
    settings: Json = {}
    threads = config.get("thread_count")
    if isinstance(threads, int) and not isinstance(threads, bool) and threads > 0:
        settings["thread_count"] = threads
    checkpoint = config.get("checkpoint")
    if isinstance(checkpoint, dict) and isinstance(checkpoint.get("sync_files"), bool):
        settings["sync_files"] = checkpoint["sync_files"]
    return settings


def _storage(config: Json) -> object:
    checkpoint = config.get("checkpoint")
    return checkpoint.get("storage") if isinstance(checkpoint, dict) else None


def _backend(config: Json) -> Json:
    backend = config.get("backend")
    return {"collective_backend": backend} if isinstance(backend, str) and 0 < len(backend) <= 32 else {}


def _torch_version(results: Json) -> str | None:
    metadata = results.get("metadata")
    version = metadata.get("pytorch_version") if isinstance(metadata, dict) else None
    return version if isinstance(version, str) and 0 < len(version) <= 64 else None
