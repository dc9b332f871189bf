"""A schedule with some changes: what `schedules.py` checks and stores when somebody edits one. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from ostinato.errors import Conflict
from ostinato.models.policy import DEFAULT, SECRET_POLICIES, PolicyOptions, make_policy, policy_json, shown_policy
from ostinato.models.schedule import Schedule
from ostinato.models.work import Function, Unreadable, default_policy
from ostinato.service.schedules.drafts import ScheduleSpec, WorkLike
from ostinato.timing import Timing

__all__ = ["edited_spec"]


def edited_spec(
    current: Schedule,
    timing: Timing | str | None,
    work: WorkLike | None,
    tz: str | None,
    note: str | None,
    project: str | None,
    policy: Mapping[str, Any],
) -> ScheduleSpec:
    """The schedule with what was given."""
    if work is None and isinstance(current.work, Unreadable):
        raise Conflict(
            f"the work of schedule {current.name!r} cannot be read ({current.work.reason}): "
            "fix that, or give it new work"
        )
    return ScheduleSpec(
        current.name,
        timing if timing is not None else current.timing,
        work if work is not None else current.work,  # type: ignore[arg-type]  # Unreadable was refused above
        tz or current.zone,
        # A schedule that has no note keeps none, so that to clear it twice changes nothing.
        note=note if note or current.note else None,
        project=project or current.project,
        owner=current.owner,
        policy=_edited_policy(policy, current, work),
    )


def _edited_policy(given: Mapping[str, Any], current: Schedule, work: WorkLike | None) -> PolicyOptions:
    """The policy with what was given; work of another kind comes with that kind's timeout, and with its retry unless
    somebody has asked for another."""
    shown = shown_policy(current.policy)
    # What comes back as it was shown, stars in the place of a secret, is not changed.
    changed = {name: value for name, value in given.items() if name not in SECRET_POLICIES or value != shown[name]}
    policy = policy_json(make_policy(changed, current.policy))
    before, after = current.work.kind, getattr(work, "kind", Function.kind)
    if work is not None and after != before:
        own = default_policy(after)
        if "timeout" not in given:
            policy["timeout"] = own.get("timeout")
        if "retry" not in given and current.policy.retry == default_policy(before).get("retry", DEFAULT.retry):
            policy["retry"] = own.get("retry", DEFAULT.retry)
    return cast(PolicyOptions, policy)
