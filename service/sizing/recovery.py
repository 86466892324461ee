"""Whether copies in groups of nodes survive nodes that are lost together.

`N` nodes keep every part of a checkpoint on `m` of them, the node's own copy included; `k` nodes are lost at once,
any `k` as likely as any others. The checkpoint survives while no part has lost all its copies.
"""

import math
from functools import lru_cache

_NEGLIGIBLE_EXPONENT = 750.0
"""exp of minus this is below the least number that a float holds."""
_GUARD_BITS = 1408
"""Fixed point: enough for the least float, and to spare for the rounding of every step."""


@lru_cache(maxsize=4096)
def survival_fraction(*, nodes: int, replicas: int, lost_nodes: int) -> float:
    """Return the probability that every part of a checkpoint keeps a copy.

    The nodes form ``g = N/m`` disjoint groups whose members keep each other's parts. For ``k < m`` it is 1, for
    ``k < 2m`` it is ``1 - g * C(N - m, k - m) / C(N, k)``, and in general, counting by inclusion and exclusion,

    ``sum over i of (-1)**i * C(g, i) * C(N - i*m, k - i*m) / C(N, k)``.

    Where `m` does not divide `N` there are ``floor(N/m) - 1`` such groups, and the ``s = m + N mod m`` nodes that are
    left form a ring in which each keeps its part on itself and on the ``m - 1`` after it; the ring loses a part when
    `m` neighbours are lost. In a ring of ``m < s < 2m``, ``s * C(s - m - 1, j - m)`` sets of ``j < s`` nodes do that,
    and the set of all.

    Args:
        nodes: `N`.
        replicas: Copies of every part, the own one included, `m`, at most `N`.
        lost_nodes: `k`, at most `N`.

    References:
        Z. Wang et al., "GEMINI: Fast Failure Recovery in Distributed Training with In-Memory Checkpoints", SOSP 2023,
        section 4: the placement, and the formula for ``k < 2m``.
    """
    if lost_nodes < replicas:
        return 1.0
    left_over = nodes % replicas
    ring = replicas + left_over if left_over else 0
    groups = (nodes - ring) // replicas
    most_survived = groups * (replicas - 1) + max(ring - 2, 0)
    if lost_nodes > most_survived:
        return 0.0
    # Losses of groups are negatively associated, so the product of their survivals bounds that of all.
    expected = groups * math.prod((lost_nodes - at) / (nodes - at) for at in range(replicas))
    if expected > _NEGLIGIBLE_EXPONENT:
        return 0.0
    one = 1 << (_GUARD_BITS + 3 * math.ceil(expected))
    survived = _without_full_group(one, groups, replicas, nodes, lost_nodes)
    if ring:
        # Sets in which the ring loses a part: a run of m neighbours after a survivor, or the whole ring.
        run = one * ring * (nodes - lost_nodes)
        for at in range(replicas):
            run *= lost_nodes - at
        run //= math.prod(nodes - at for at in range(replicas + 1))
        survived -= _without_full_group(run, groups, replicas, nodes - replicas - 1, lost_nodes - replicas)
        if lost_nodes >= ring:
            whole = one * math.prod(lost_nodes - at for at in range(ring))
            whole //= math.prod(nodes - at for at in range(ring))
            survived -= _without_full_group(whole, groups, replicas, nodes - ring, lost_nodes - ring)
    return min(max(survived / one, 0.0), 1.0)


def _without_full_group(weight: int, groups: int, replicas: int, nodes: int, lost_nodes: int) -> int:
    """Return the part of a weight that falls on sets of lost nodes which fill no group, by inclusion and exclusion."""
    total, term = weight, weight
    for full in range(1, groups + 1):
        base = (full - 1) * replicas
        over = under = 1
        for at in range(base, base + replicas):
            over *= lost_nodes - at
            under *= nodes - at
        if over <= 0 or lost_nodes - base < replicas:
            break
        term = term * over * (groups - full + 1) // (under * full)
        if term == 0:
            break
        total += -term if full % 2 else term
    return total
