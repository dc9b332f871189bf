"""A schedule with some changes: what `schedules.py` checks and stores when somebody edits one. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Unpack, cast

from ostinato.errors import Conflict, TimingError
from ostinato.models.policy import (
    DEFAULT,
    NO_RETRY,
    SECRET_POLICIES,
    PolicyOptions,
    make_policy,
    policy_json,
    shown_policy,
)
from ostinato.models.policy_fields import RUN_ONCE
from ostinato.models.schedule import Schedule
from ostinato.models.work import Function, Unreadable, default_policy
from ostinato.service.schedules.drafts import ScheduleSpec, WorkLike, with_runs
from ostinato.timing import Timing, parse_timing
from ostinato.timing.zones import Zone

__all__ = ["edited_spec"]

_ANY_DAY = datetime(2026, 1, 1, tzinfo=UTC)
"""How often something is to run does not depend on when it is asked."""


def edited_spec(
    current: Schedule,
    timing: Timing | str | None = None,
    work: WorkLike | None = None,
    tz: Zone | None = None,
    note: str | None = None,
    project: str | None = None,
    **policy: Unpack[PolicyOptions],
) -> ScheduleSpec:
    """The schedule with what was given."""
    if work is None and isinstance(current.work, Unreadable):
        raise Conflict(
            f"the work of schedule {current.name!r} cannot be read ({current.work.reason}): "
            "fix that, or give it new work"
        )
    runs = None if timing is None else _runs_of(timing)
    return ScheduleSpec(
        current.name,
        _kept_timing(current.timing) if timing is None or timing == current.timing else timing,
        work if work is not None else current.work,  # type: ignore[arg-type]  # Unreadable was refused above
        tz or current.zone,
        # A schedule that has no note keeps none, so that to clear it twice changes nothing.
        note=note if note or current.note else None,
        project=project or current.project,
        owner=current.owner,
        policy=_edited_policy(policy if runs is None else with_runs(runs, policy), current, work),
        kept=current.policy if timing in (None, current.timing) else None,
    )


def _runs_of(timing: Timing | str) -> int | None:
    """How many runs a new timing asks for; whether it can be one at all is for its draft to tell."""
    try:
        read = parse_timing(timing, tz="UTC", now=_ANY_DAY) if isinstance(timing, str) else timing
    except TimingError:
        return None
    return read.runs if isinstance(read, Timing) else None


def _kept_timing(text: str) -> str:
    """What was stored, in words that are taken now; as it is, where nobody can read it."""
    try:
        return parse_timing(text, stored=True).text
    except TimingError:
        return text


def _edited_policy(given: Mapping[str, Any], current: Schedule, work: WorkLike | None) -> PolicyOptions:
    """The policy with what was given; work of another kind comes with that kind's timeout. It comes with its
    retry and its breaker, and what is to run once with no retry, unless somebody has asked for another."""
    shown = shown_policy(current.policy)
    # What comes back as it was shown, stars in the place of a secret, is not changed.
    changed = {name: value for name, value in given.items() if name not in SECRET_POLICIES or value != shown[name]}
    policy = policy_json(make_policy(changed, current.policy))
    before, after = current.work.kind, getattr(work, "kind", Function.kind)
    is_retry_asked = "retry" in given or current.policy.retry != default_policy(before).get("retry", DEFAULT.retry)
    if work is not None and after != before:
        own = default_policy(after)
        if "timeout" not in given:
            policy["timeout"] = own.get("timeout")
        if not is_retry_asked:
            policy["retry"] = own.get("retry", DEFAULT.retry)
        if "break_after" not in given and current.policy.break_after == default_policy(before).get("break_after"):
            policy["break_after"] = own.get("break_after")
    if policy["remaining"] == 1 and given.keys() & {"remaining", RUN_ONCE} and not is_retry_asked:
        policy["retry"] = NO_RETRY
    return cast(PolicyOptions, policy)
