"""Whether a schedule is fresh, pure: it must have succeeded within the time that its policy names.

`schedules.fresh_at` says when to look: every success moves it, and `engine/freshness.py` sleeps until then. What the
ledger says decides, for the policy of a run may be older than that of its schedule.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ostinato.clock import SECOND, Micros, from_micros, micros_of
from ostinato.durations import duration_text
from ostinato.errors import NotLoadable
from ostinato.models.ids import ScheduleId
from ostinato.models.incident import LATE, Notice
from ostinato.models.notification import NoticeKind
from ostinato.models.policy import DEFAULT, Policy, load_policy
from ostinato.timing.zones import local_text

__all__ = ["Freshness"]


@dataclass(frozen=True)
class Freshness:
    """A schedule whose `fresh_at` has come, and when it succeeded last."""

    id: ScheduleId
    name: str
    zone: str
    policy_text: str
    project: str | None
    created_at: Micros
    fresh_at: Micros
    succeeded_at: Micros | None
    """By the runs that are kept; None if none of them succeeded without errors."""

    @cached_property
    def policy(self) -> Policy:
        """One that cannot be read asks for nothing."""
        try:
            return load_policy(self.policy_text)
        except NotLoadable:
            return DEFAULT

    @property
    def until(self) -> Micros | None:
        """How long it is fresh by its last success and its policy of today; None if that asks for nothing."""
        if self.policy.fresh is None:
            return None
        return self.fresh_at if self.succeeded_at is None else self.succeeded_at + micros_of(self.policy.fresh)

    def is_late(self, now: Micros) -> bool:
        """Whether people are to be told."""
        return self.until is not None and self.until <= now

    def notice(self, now: Micros) -> Notice:
        """What they are told."""
        return Notice(
            NoticeKind.LATE,
            self.name,
            now,
            cause=LATE,
            reason=self.sentence,
            schedule=self.name,
            schedule_id=self.id,
            project=self.project,
            notify=self.policy.notify,
        )

    @property
    def sentence(self) -> str:
        """Since when it has not succeeded. Of runs that are no longer kept, the due time of the look tells it."""
        assert self.policy.fresh is not None
        fresh = micros_of(self.policy.fresh)
        since = self.fresh_at - fresh if self.succeeded_at is None else self.succeeded_at
        asked = f"(fresh is {duration_text(self.policy.fresh)})"
        if self.succeeded_at is None and since <= self.created_at + SECOND:
            return f"has never succeeded since it was added at {self._text(self.created_at)} {asked}"
        return f"has not succeeded since {self._text(since)} {asked}"

    def _text(self, instant: Micros) -> str:
        return local_text(self.zone, from_micros(instant))
