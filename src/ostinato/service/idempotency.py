"""Requests that may come again: the first with a key is carried out, and its answer is what the others get."""

from __future__ import annotations

from dataclasses import dataclass

from ostinato.clock import Clock, Micros
from ostinato.errors import OutcomeUnknown, StoreUnavailable
from ostinato.models.access import Answer
from ostinato.stores.base import Store

__all__ = ["IdempotencyKey", "IdempotencyService"]


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    """A key that a request has, until it is ended or another takes it for lost."""

    who: str
    key: str
    begun_at: Micros


class IdempotencyService:
    """Keys and their answers, each for a day."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def begin(self, who: str, key: str, fingerprint: str) -> IdempotencyKey | Answer:
        """Take the key; or what is known of the request that has it."""
        now = self._clock.now()
        try:
            known = await self._store.access.begin_request(who, key, fingerprint, now)
        except OutcomeUnknown as error:
            # The key may be taken; what it was to be taken for has not begun.
            raise StoreUnavailable(f"{error} (the key {key!r}, for which nothing was done)") from error
        return IdempotencyKey(who, key, now) if known is None else known

    async def end(self, taken: IdempotencyKey, answer: Answer | None) -> None:
        """Keep the answer; None gives the key back."""
        await self._store.access.end_request(taken.who, taken.key, taken.begun_at, answer)
