"""The one gate to a schedule's switch: whoever wants it on asks here, and nothing is changed when it says no.

`enable` asks, and so do drafts that would switch on what the breaker had switched off (draft_checks.py). No change
switches on what a person switched off: that is `stores/drafts.py`.
"""

from __future__ import annotations

from ostinato.clock import Micros
from ostinato.errors import ChecksFailed, Conflict
from ostinato.models.policy import Policy
from ostinato.service.schedules.drafts import Code
from ostinato.timing import parse_timing
from ostinato.timing.calendar_days import folded

__all__ = ["check_switching_on"]


async def check_switching_on(name: str, policy: Policy, timing: str, due: Micros | None, code: Code) -> None:
    """ChecksFailed or Conflict, if a schedule with this policy and next due time is not to be switched on."""
    failures = await code.failed_checks(policy.checks)
    if failures:
        raise ChecksFailed(name, failures)
    if due is None and not parse_timing(timing, name=name, stored=True).follows:
        raise Conflict(f"schedule {name!r} is finished: {folded(timing)!r} has no further due time; edit it")
