"""How often the machine behind one key may check in: so many times in a minute."""

from __future__ import annotations

from collections import OrderedDict, deque

from ostinato.clock import SECOND, Micros
from ostinato.errors import TooManyAttempts

__all__ = ["PingThrottle"]

PER_KEY = 60
WINDOW: Micros = 60 * SECOND
_KEYS = 10_000
"""So many are remembered; the one that checked in longest ago is forgotten first."""


class PingThrottle:
    """Remembers when keys were used, in this process."""

    def __init__(self) -> None:
        self._by_key: OrderedDict[str, deque[Micros]] = OrderedDict()

    def knows(self, key: str) -> bool:
        """Whether this key was used before."""
        return key in self._by_key

    def forget(self, key: str) -> None:
        """It is none any more."""
        self._by_key.pop(key, None)

    def count(self, key: str, now: Micros) -> None:
        """Count one more; TooManyAttempts, if that is too many."""
        used = self._by_key.setdefault(key, deque(maxlen=PER_KEY))
        self._by_key.move_to_end(key)
        if len(used) == PER_KEY and now - used[0] < WINDOW:
            wait = max(1, -(-(used[0] + WINDOW - now) // SECOND))
            raise TooManyAttempts(
                f"this machine checks in more than {PER_KEY} times in a minute: try again in {wait} s", retry_after=wait
            )
        used.append(now)
        while len(self._by_key) > _KEYS:
            self._by_key.popitem(last=False)
