"""Amounts as people read them: decimal, with the binary unit beside it, since the benchmarks print that."""

from service.sizing.sizing import Comparison, TargetUnit
from service.units import GB

_DECIMAL = ((10**15, "PB"), (10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB"))
_BINARY = ((2**50, "PiB"), (2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))
_BOUNDS = {Comparison.AT_LEAST: "at least", Comparison.AT_MOST: "at most", Comparison.WITHIN: "about"}


def of_bytes(value: float) -> str:
    """Return bytes in both kinds of unit.

    >>> of_bytes(347_078_656), of_bytes(512)
    ('347.1 MB (331 MiB)', '512 bytes')
    """
    return (
        f"{_in(value, _DECIMAL)} ({_in(value, _BINARY)})"
        if value >= _BINARY[-1][0]
        else f"{value:,.0f} bytes"
    )


def of_seconds(value: float) -> str:
    """Return a duration.

    >>> of_seconds(0.5), of_seconds(180), of_seconds(7300)
    ('0.5 s', '180 s (3 min)', '7,300 s (2 h 2 min)')
    """
    if value < 120:
        return f"{number(value)} s"
    minutes = round(value / 60)
    words = f"{minutes} min" if minutes < 60 else f"{minutes // 60:,} h {minutes % 60} min"
    return f"{number(value)} s ({words})"


def of_unit(value: float, unit: TargetUnit) -> str:
    """Return a figure with the unit of its target.

    >>> of_unit(94.5, TargetUnit.GB_PER_SECOND)
    '94.5 GB/s (90,122 MiB/s)'
    """
    match unit:
        case TargetUnit.GB_PER_SECOND:
            return f"{number(value)} GB/s ({number(value * GB / 2**20)} MiB/s)"
        case TargetUnit.SECONDS:
            return of_seconds(value)
        case TargetUnit.PER_SECOND:
            return f"{number(value)} files/s"
        case TargetUnit.BYTES:
            return of_bytes(value)


def bound(comparison: Comparison, value: float, unit: TargetUnit) -> str:
    """Return what a target asks: `at least 94.5 GB/s (90,122 MiB/s)`."""
    return f"{_BOUNDS[comparison]} {of_unit(value, unit)}"


def of_nodes(count: int, *, out_of: int | None = None) -> str:
    """Return so many nodes, out of how many where those are more.

    >>> of_nodes(1), of_nodes(16, out_of=2048)
    ('1 node', '16 of 2,048 nodes')
    """
    if out_of not in (None, count):
        return f"{count:,} of {out_of:,} nodes"
    return f"{count:,} node{'' if count == 1 else 's'}"


def number(value: float) -> str:
    """Return a number to four digits, whole ones with their thousands set off."""
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e15 else f"{value:.4g}"


def _in(value: float, units: tuple[tuple[int, str], ...]) -> str:
    size, name = next((unit for unit in units if value >= unit[0]), units[-1])
    return f"{number(value / size)} {name}"
