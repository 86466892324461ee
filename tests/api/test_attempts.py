"""Failed attempts: so many in a window, by address, in bounded memory."""

import pytest

from service.api import attempts
from service.api.attempts import WINDOW_SECONDS, FailedAttempts

ATTEMPTS = 20


def test_an_address_waits_until_its_first_attempt_leaves_the_window() -> None:
    failed = FailedAttempts(ATTEMPTS)
    for n in range(ATTEMPTS):
        assert failed.wait_seconds("10.0.0.1", float(n)) == 0
        failed.count("10.0.0.1", float(n))
    assert failed.wait_seconds("10.0.0.1", ATTEMPTS) == WINDOW_SECONDS - ATTEMPTS
    assert failed.wait_seconds("10.0.0.1", WINDOW_SECONDS - 0.01) == 1
    assert failed.wait_seconds("10.0.0.1", WINDOW_SECONDS) == 0
    assert failed.wait_seconds("10.0.0.2", ATTEMPTS) == 0


def test_what_is_forgiven_does_not_count_and_takes_no_memory() -> None:
    failed = FailedAttempts(ATTEMPTS)
    for n in range(3 * ATTEMPTS):
        failed.count("10.0.0.1", float(n))
        failed.forgive("10.0.0.1", float(n))
    assert failed.wait_seconds("10.0.0.1", 0) == 0
    assert failed._times == {}
    failed.forgive("10.0.0.1", 0)


@pytest.mark.parametrize(
    ("one", "other", "are_one"),
    [
        ("2001:db8::1", "2001:db8::ffff:2", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:10.0.0.1", "10.0.0.1", True),
        ("::ffff:10.0.0.1", "::ffff:10.0.0.2", False),
        ("", "testclient", False),
    ],
)
def test_one_caller_is_one_address_of_ipv4_or_half_of_one_of_ipv6(
    one: str, other: str, are_one: bool
) -> None:
    failed = FailedAttempts(ATTEMPTS)
    for _ in range(ATTEMPTS):
        failed.count(one, 0.0)
    assert (failed.wait_seconds(other, 1.0) > 0) is are_one


def test_no_more_addresses_are_remembered_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "ADDRESSES", 3)
    failed = FailedAttempts(ATTEMPTS)
    for n in range(10):
        failed.count(f"10.0.0.{n}", 0.0)
    assert list(failed._times) == ["10.0.0.7", "10.0.0.8", "10.0.0.9"]
