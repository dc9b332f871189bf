"""The secret keys of a schedule: that of its ping address, and that of its badge. A key leaves here once; its hash is
kept."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass

from ostinato.clock import Micros
from ostinato.errors import Conflict, NotFound
from ostinato.models.check_in import KeyPurpose
from ostinato.models.schedule import Schedule
from ostinato.models.work import CheckIn
from ostinato.stores.base import Store

__all__ = ["ScheduleKey", "hash_key", "make_key"]

_BYTES = 18
_LONGEST = 100
"""Nobody has made a longer one: it need not be looked up."""


@dataclass(frozen=True, slots=True)
class ScheduleKey:
    """A key that was just made, which nobody can read again."""

    schedule: str
    purpose: KeyPurpose
    key: str
    path: str
    """Of the address that it opens: behind the address of the server."""


async def make_key(store: Store, schedule: Schedule, purpose: KeyPurpose, now: Micros, *, new: bool) -> ScheduleKey:
    """Give a schedule its key for this; another one in its place, if it is to be a `new` one."""
    if purpose is KeyPurpose.PING and not isinstance(schedule.work, CheckIn):
        raise Conflict(
            f"schedule {schedule.name!r} has no ping address: its work is {schedule.work.kind}, and only a check-in is "
            "done by a machine of its own"
        )
    key = secrets.token_urlsafe(_BYTES)
    if not await store.check_ins.put_key(schedule.id, purpose, _hash(key), now, replace=new):
        if await store.schedules.get_schedule(schedule.name) is None:
            raise NotFound(f"schedule {schedule.name!r} was removed in the meantime")
        raise Conflict(
            f"schedule {schedule.name!r} has a {purpose} key, which was shown when it was made: ask for a new one "
            "(--new), and the old one ends"
        )
    path = f"/ping/{key}" if purpose is KeyPurpose.PING else f"/badge/{key}.svg"
    return ScheduleKey(schedule.name, purpose, key, path)


def hash_key(key: str) -> str | None:
    """What is kept of it; None of what cannot be one."""
    return _hash(key) if 0 < len(key) <= _LONGEST and key.isascii() else None


def _hash(key: str) -> str:
    # Keys are long and random: a slow hash would add nothing.
    return hashlib.sha256(key.encode()).hexdigest()
