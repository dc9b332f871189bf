"""How often a wrong secret may come, and how much is remembered of it."""

from __future__ import annotations

import pytest

from ostinato.api.login_throttle import LoginThrottle
from ostinato.clock import SECOND
from ostinato.errors import TooManyAttempts


def test_an_attempt_is_looked_at_again_when_the_oldest_of_ten_is_a_minute_old() -> None:
    attempts = LoginThrottle()
    for second in range(10):
        attempts.check("a", second * SECOND)
        attempts.failed("a", second * SECOND)
    with pytest.raises(TooManyAttempts, match="in 51 s") as told:
        attempts.check("a", 9 * SECOND)
    assert told.value.retry_after == 51
    attempts.check("b", 9 * SECOND)
    attempts.check("a", 60 * SECOND)
    attempts.failed("a", 60 * SECOND)
    with pytest.raises(TooManyAttempts, match="in 1 s"):
        attempts.check("a", 60 * SECOND)


def test_what_is_remembered_is_bounded() -> None:
    attempts = LoginThrottle()
    for number in range(20_000):
        attempts.failed(f"address {number}", number * 60 * SECOND)
    assert len(attempts._by_address) == 10_000
    assert len(attempts._all) == 100
    attempts.check("address 19999", 20_000 * 60 * SECOND)
