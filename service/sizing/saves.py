"""What a save writes and a restore reads where the two differ: deduplicated saves, and differences between full ones.

A deduplicated save writes only what earlier saves do not hold, and is read back whole. Differential saves come in
runs of `full_every`: a full one, and then the difference of each from the one before it, so that a restore reads the
full one and all differences up to the last.

References:
    A. Eisenman et al., "Check-N-Run: a Checkpointing System for Training Deep Learning Recommendation Models",
    NSDI 22, section 4: full and consecutive incremental checkpoints.
"""


def difference_bytes(
    *, state_bytes: float, compression_factor: float, differential_fraction: float, extra_bytes: float
) -> float:
    """Return what a save between two full ones writes: at least a byte. [B]

    Args:
        state_bytes: The parameters' state, plain. [B]
        compression_factor: Compressed over plain bytes.
        differential_fraction: What changed since the save before.
        extra_bytes: What every save holds anew: data-loader and random-number state. [B]
    """
    return max(state_bytes * compression_factor * differential_fraction + extra_bytes, 1.0)


def mean_save_bytes(*, checkpoint_bytes: float, difference_bytes: float, full_every: int) -> float:
    """Return what a save writes on average over a run of full and differential ones. [B]"""
    return (checkpoint_bytes + (full_every - 1) * difference_bytes) / full_every


def longest_chain_bytes(*, checkpoint_bytes: float, difference_bytes: float, full_every: int) -> float:
    """Return what a restore reads just before the next full save: the full one and all differences since. [B]"""
    return checkpoint_bytes + (full_every - 1) * difference_bytes


def mean_chain_bytes(*, checkpoint_bytes: float, difference_bytes: float, full_every: int) -> float:
    """Return what a restore reads on average, if it comes after any save of a run alike. [B]"""
    return checkpoint_bytes + (full_every - 1) / 2.0 * difference_bytes


def whole_bytes(*, state_bytes: float, compression_factor: float, extra_bytes: float) -> float:
    """Return what a restore of a deduplicated checkpoint reads: all of it, whichever save wrote it. [B]"""
    return state_bytes * compression_factor + extra_bytes


def kept_chain_bytes(
    *,
    checkpoint_bytes: float,
    difference_bytes: float,
    full_every: int,
    copies: int,
    protection_fraction: float,
) -> float:
    """Return the space of the last `copies` checkpoints, with all saves that they rest on, protection included. [B]

    At worst the oldest of them ends a run, and the whole run before it is kept for its sake:
    ``copies + full_every - 1`` saves, of which every `full_every`-th from the first is full.
    """
    saves = copies + full_every - 1
    full = -(-saves // full_every)
    return (full * checkpoint_bytes + (saves - full) * difference_bytes) * (1.0 + protection_fraction)


def kept_shared_bytes(
    *, restored_bytes: float, checkpoint_bytes: float, copies: int, protection_fraction: float
) -> float:
    """Return the space of the last `copies` deduplicated checkpoints, protection included. [B]

    The oldest is there as a whole, and of each later one what it wrote.
    """
    return (restored_bytes + (copies - 1) * checkpoint_bytes) * (1.0 + protection_fraction)


def chain_saves_that_fit(
    *, usable_bytes: float, checkpoint_bytes: float, difference_bytes: float, full_every: int
) -> float:
    """Return how many saves of runs that begin with a full one a usable space takes."""
    run = checkpoint_bytes + (full_every - 1) * difference_bytes
    runs, left = divmod(usable_bytes, run)
    saves = runs * full_every
    return saves + 1.0 + (left - checkpoint_bytes) // difference_bytes if left >= checkpoint_bytes else saves


def shared_saves_that_fit(*, usable_bytes: float, restored_bytes: float, checkpoint_bytes: float) -> float:
    """Return how many deduplicated saves a usable space takes."""
    left = usable_bytes - restored_bytes
    return 1.0 + left // checkpoint_bytes if left >= 0.0 else 0.0


def chain_copies_that_fit(
    *, usable_bytes: float, checkpoint_bytes: float, difference_bytes: float, full_every: int
) -> float:
    """Return how many checkpoints a usable space keeps with what they rest on, while one more is in flight."""
    saves = chain_saves_that_fit(
        usable_bytes=usable_bytes,
        checkpoint_bytes=checkpoint_bytes,
        difference_bytes=difference_bytes,
        full_every=full_every,
    )
    return max(saves - full_every, 0.0)


def shared_copies_that_fit(*, usable_bytes: float, restored_bytes: float, checkpoint_bytes: float) -> float:
    """Return how many deduplicated checkpoints a usable space keeps, while one more is in flight."""
    saves = shared_saves_that_fit(
        usable_bytes=usable_bytes, restored_bytes=restored_bytes, checkpoint_bytes=checkpoint_bytes
    )
    return max(saves - 1.0, 0.0)
