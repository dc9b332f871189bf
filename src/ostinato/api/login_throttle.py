"""How often wrong tokens and codes may come: so many in a minute from one address, and so many in all."""

from __future__ import annotations

from collections import OrderedDict, deque

from ostinato.clock import SECOND, Micros
from ostinato.errors import TooManyAttempts

__all__ = ["LoginThrottle"]

PER_ADDRESS = 10
IN_ALL = 100
WINDOW: Micros = 60 * SECOND
_ADDRESSES = 10_000
"""So many are remembered; the one that failed longest ago is forgotten first."""


class LoginThrottle:
    """Remembers when attempts failed, in this process."""

    def __init__(self) -> None:
        self._by_address: OrderedDict[str, deque[Micros]] = OrderedDict()
        self._all: deque[Micros] = deque(maxlen=IN_ALL)

    def check(self, address: str | None, now: Micros) -> None:
        """TooManyAttempts, if nothing from there is looked at just now."""
        of_address = self._by_address.get(address or "", deque())
        for failures, most in ((of_address, PER_ADDRESS), (self._all, IN_ALL)):
            if len(failures) == most and now - failures[0] < WINDOW:
                wait = -(-(failures[0] + WINDOW - now) // SECOND)
                raise TooManyAttempts(
                    f"too many wrong tokens or codes: try again in {wait} s", retry_after=max(1, wait)
                )

    def has_failed(self, address: str | None) -> bool:
        """Whether something from there did not hold before."""
        return (address or "") in self._by_address

    def failed(self, address: str | None, now: Micros) -> None:
        """Count one that did not hold."""
        failures = self._by_address.setdefault(address or "", deque(maxlen=PER_ADDRESS))
        self._by_address.move_to_end(address or "")
        failures.append(now)
        self._all.append(now)
        while len(self._by_address) > _ADDRESSES:
            self._by_address.popitem(last=False)
