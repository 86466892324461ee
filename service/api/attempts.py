"""Failed attempts to present a key, counted by address: so many in a window of time, and then none for a while."""

import math
from collections import deque
from functools import lru_cache
from ipaddress import IPv6Address, ip_address

WINDOW_SECONDS = 60.0
ADDRESSES = 10_000
"""How many addresses are remembered; beyond that the one that was heard of first is forgotten."""


class FailedAttempts:
    """The attempts of each address within the window. An attempt counts as failed until it is forgiven.

    Counted before it is checked: of many at once no more are checked than may fail.

    Args:
        attempts: How many of one address may fail within the window.
    """

    def __init__(self, attempts: int) -> None:
        self._attempts = attempts
        self._times: dict[str, deque[float]] = {}

    def wait_seconds(self, address: str, at: float) -> int:
        """Return after how many whole seconds the address may try again; 0 where it may now."""
        times = self._times.get(network_of(address))
        if times is None:
            return 0
        while times and times[0] <= at - WINDOW_SECONDS:
            times.popleft()
        return 0 if len(times) < self._attempts else max(1, math.ceil(times[0] + WINDOW_SECONDS - at))

    def count(self, address: str, at: float) -> None:
        """Count an attempt."""
        network = network_of(address)
        if network not in self._times and len(self._times) >= ADDRESSES:
            del self._times[next(iter(self._times))]
        self._times.setdefault(network, deque()).append(at)

    def forgive(self, address: str, at: float) -> None:
        """Take back an attempt that was counted at that time, since it did not fail."""
        network = network_of(address)
        times = self._times.get(network)
        if times is None:
            return
        if at in times:
            times.remove(at)
        if not times:
            del self._times[network]


@lru_cache(maxsize=10_000)
def network_of(address: str) -> str:
    """Return what one caller has: an address of IPv4, the first half of one of IPv6."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    if not isinstance(parsed, IPv6Address):
        return address
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return f"{int(parsed) >> 64:x}::/64"
