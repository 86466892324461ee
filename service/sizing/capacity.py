"""Space for the copies that are kept."""


def kept_bytes(*, checkpoint_bytes: float, copies: int, protection_fraction: float) -> float:
    """Return the space of the copies kept on a tier, protection included. [B]

    ``copies * S * (1 + protection)``. Ten copies of the articles' 5.67 TB without protection are 56.7 TB.
    """
    return copies * checkpoint_bytes * (1.0 + protection_fraction)


def peak_bytes(*, checkpoint_bytes: float, copies: int, protection_fraction: float) -> float:
    """Return that space while one more copy is being written. [B]"""
    return (copies + 1) * checkpoint_bytes * (1.0 + protection_fraction)


def copies_that_fit(*, usable_bytes: float, checkpoint_bytes: float) -> float:
    """Return how many copies a usable space keeps while one more is in flight; 0 where not even that one fits.

    Usable space is what is left after the system's own protection, so none is added here.
    """
    return max(usable_bytes // checkpoint_bytes - 1.0, 0.0)


def seconds_until_full(*, usable_bytes: float, checkpoint_bytes: float, interval_seconds: float) -> float:
    """Return when a usable space is full if every save is kept. [s]"""
    return usable_bytes // checkpoint_bytes * interval_seconds
