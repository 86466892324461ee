"""The sentences of a gap report: figures with their units, and what each status means in words."""

from service.sizing.sizing import Comparison, Target, TargetId, TargetUnit

NAMES: dict[TargetId, str] = {
    TargetId.WRITE_BANDWIDTH: "write bandwidth",
    TargetId.NODE_WRITE_BANDWIDTH: "write bandwidth of a node",
    TargetId.WRITE_BANDWIDTH_UNDER_READ_LOAD: "write bandwidth under read load",
    TargetId.SLOWEST_WRITER_SECONDS: "time of the slowest writer",
    TargetId.BLOCKING_SECONDS: "time that training stops for a save",
    TargetId.PERSIST_SECONDS: "time until a save is durable",
    TargetId.READ_BANDWIDTH: "read bandwidth",
    TargetId.NODE_READ_BANDWIDTH: "read bandwidth of a node",
    TargetId.LOAD_SECONDS: "time of a load",
    TargetId.RESHARDED_LOAD_SECONDS: "time of a resharded load",
    TargetId.FILE_CREATE_RATE: "rate of file creates",
    TargetId.CHECKPOINT_BYTES: "size of a checkpoint",
}

_BYTE_UNITS = ((10**15, "PB"), (10**12, "TB"), (10**9, "GB"), (10**6, "MB"))


def quantity(value: float, unit: TargetUnit) -> str:
    """Return a figure with its unit, to four digits.

    >>> quantity(94.5, TargetUnit.GB_PER_SECOND), quantity(5.67e12, TargetUnit.BYTES)
    ('94.5 GB/s', '5.67 TB')
    """
    match unit:
        case TargetUnit.GB_PER_SECOND:
            return f"{number(value)} GB/s"
        case TargetUnit.SECONDS:
            return f"{number(value)} s"
        case TargetUnit.PER_SECOND:
            return f"{number(value)} files/s"
        case TargetUnit.BYTES:
            return bytes_in_words(value)


def bytes_in_words(value: float) -> str:
    """Return bytes in the decimal unit that suits them."""
    for size, name in _BYTE_UNITS:
        if value >= size:
            return f"{number(value / size)} {name}"
    return f"{number(value)} bytes"


def number(value: float) -> str:
    """Return a number to four digits, its thousands set off; a very small or large one as a power of ten."""
    if 1e4 <= abs(value) < 1e15:
        return f"{value:,.0f}"
    if 1e3 <= abs(value) < 1e4:
        return f"{float(f'{value:.4g}'):,.0f}"
    return f"{value:.4g}"


def percent(fraction: float) -> str:
    """Return a fraction in per cent: `0.7812 %`."""
    return f"{number(fraction * 100)} %"


def dollars(amount: float) -> str:
    """Return dollars, whole from a thousand on: `$5,637,873`, `$322.30`."""
    return f"${amount:,.0f}" if abs(amount) >= 1000 else f"${amount:,.2f}"


def needed(target: Target) -> str:
    """Return what the target asks: `at least 94.5 GB/s`."""
    amount = quantity(target.value, target.unit)
    match target.comparison:
        case Comparison.AT_LEAST:
            return f"at least {amount}"
        case Comparison.AT_MOST:
            return f"at most {amount}"
        case Comparison.WITHIN:
            return f"within {number((target.tolerance_fraction or 0.0) * 100)} % of {amount}"


def off_by(target: Target, ratio: float) -> str:
    """Return how far off a missed target is: `20 % short`, `1.5 times too long`."""
    match target.comparison:
        case Comparison.AT_LEAST:
            return f"{number((1.0 - ratio) * 100)} % short"
        case Comparison.AT_MOST:
            return f"{number(ratio)} times what is allowed"
        case Comparison.WITHIN:
            return f"{number(abs(ratio - 1.0) * 100)} % {'more' if ratio > 1.0 else 'less'}"


def capitalised(sentence: str) -> str:
    """Return the sentence with a capital at its start."""
    return sentence[:1].upper() + sentence[1:]
