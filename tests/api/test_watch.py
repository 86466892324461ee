"""The watch: looks at everything in it while there is something, and takes a pace over one stretch after the other."""

import asyncio

import pytest

from service.api.watch import Pace, Watch


class _Seen:
    def __init__(self) -> None:
        self.at: list[float] = []
        self.twice = asyncio.Event()

    def look(self, at: float) -> None:
        self.at.append(at)
        if len(self.at) == 2:
            self.twice.set()


class _Broken:
    def look(self, at: float) -> None:
        raise RuntimeError(at)


def test_what_is_in_it_is_looked_at_again_and_again_until_it_is_taken_out() -> None:
    async def scene() -> None:
        watch = Watch(every_seconds=0.001)
        first, second = _Seen(), _Seen()
        watch.add(first)
        await asyncio.wait_for(first.twice.wait(), 30)
        watch.remove(first)
        seen = len(first.at)
        # The timer ends with the last one, and begins with the next.
        watch.add(second)
        await asyncio.wait_for(second.twice.wait(), 30)
        assert len(first.at) == seen
        assert first.at == sorted(first.at)
        watch.remove(second)
        watch.remove(second)
        assert len(watch) == 0

    asyncio.run(scene())


def test_it_goes_on_in_another_loop() -> None:
    watch = Watch(every_seconds=0.001)

    async def scene() -> None:
        one = _Seen()
        watch.add(one)
        await asyncio.wait_for(one.twice.wait(), 30)

    asyncio.run(scene())
    asyncio.run(scene())


def test_one_that_fails_keeps_nobody_from_being_looked_at(caplog: pytest.LogCaptureFixture) -> None:
    async def scene() -> None:
        watch = Watch(every_seconds=60, monotonic=lambda: 7.0)
        one = _Seen()
        watch.add(_Broken())
        watch.add(one)
        watch.look()
        assert one.at == [7.0]

    asyncio.run(scene())
    assert "the watch failed" in caplog.text


def test_a_pace_is_taken_over_each_stretch() -> None:
    pace = Pace(over_seconds=10, bytes_per_second=100)
    assert not pace.is_too_slow(0, 0)
    assert not pace.is_too_slow(9.9, 0)
    assert not pace.is_too_slow(10, 1000)
    # However much came before: from here on it is another stretch.
    assert not pace.is_too_slow(19, 1_000_000)
    assert not pace.is_too_slow(20, 1_000_000)
    assert not pace.is_too_slow(29, 1_000_999)
    assert pace.is_too_slow(30, 1_000_999)


def test_a_rest_begins_anew() -> None:
    pace = Pace(over_seconds=10, bytes_per_second=100)
    assert not pace.is_too_slow(0, 0)
    pace.rest()
    assert not pace.is_too_slow(100, 0)
    assert not pace.is_too_slow(109, 0)
    assert pace.is_too_slow(110, 999)


def test_without_a_pace_something_at_least_has_to_move() -> None:
    pace = Pace(over_seconds=10, bytes_per_second=0)
    assert not pace.is_too_slow(0, 0)
    assert not pace.is_too_slow(10, 1)
    assert pace.is_too_slow(20, 1)
