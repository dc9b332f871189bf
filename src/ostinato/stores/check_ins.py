"""Check-ins and the keys of schedules, as the other layers ask for them: a part of base.py, answered in
sql/check_ins.py."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ostinato.clock import Micros
from ostinato.models.check_in import KeyPurpose, Ping
from ostinato.models.ids import RunId, ScheduleId
from ostinato.models.run import Finish
from ostinato.stores.runs import NOTHING_TOLD, Told
from ostinato.stores.schedules import Late

__all__ = ["CheckInStore", "CheckedIn", "LateCheckIns"]


@dataclass(frozen=True, slots=True)
class CheckedIn:
    """What became of a ping."""

    schedule: str
    run: RunId
    finish: Finish | None = None
    """None if it told of a start."""
    told: Told = NOTHING_TOLD


@dataclass(frozen=True, slots=True)
class LateCheckIns:
    """What became of runs whose check-in did not come."""

    late: Late
    next_at: Micros | None
    """When the next one is late, if nobody checks in before."""


class CheckInStore(Protocol):
    """Machines that check in, and the secret keys by which they are known; only their hashes are kept."""

    async def put_key(
        self, schedule_id: ScheduleId, purpose: KeyPurpose, hash: str, now: Micros, *, replace: bool
    ) -> bool:
        """Give a schedule its key for this, or another one in its place; False if it has one that is to stay."""
        ...

    async def schedule_of_key(self, hash: str, purpose: KeyPurpose) -> str | None:
        """The name of the schedule that this is the key of."""
        ...

    async def check_in(self, hash: str, ping: Ping, now: Micros) -> CheckedIn | None:
        """In one transaction: the run that waits for it starts, or ends with all that follows; if none waits, it makes
        its own. None if it is nobody's key, or that of a schedule whose work is no check-in any more."""
        ...

    async def end_late(self, now: Micros) -> LateCheckIns:
        """In one transaction: end the runs whose check-in is late, and tell it."""
        ...
