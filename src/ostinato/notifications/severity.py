"""How grave a message is, pure: as grave as the worst notice that it tells.

text.py asks it; apprise_channel.py hands it on, and services show it as a colour or a priority.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from ostinato.models.notification import Delivery, NoticeKind
from ostinato.models.states import RunState

__all__ = ["Severity", "severity_of"]


class Severity(StrEnum):
    """By apprise's names, the worst first."""

    FAILURE = "failure"
    WARNING = "warning"
    INFO = "info"
    SUCCESS = "success"


_ORDER = tuple(Severity)
_OF_KINDS = {
    NoticeKind.FAILED: Severity.FAILURE,
    NoticeKind.BROKEN: Severity.FAILURE,
    NoticeKind.MISSED: Severity.WARNING,
    NoticeKind.LATE: Severity.WARNING,
    NoticeKind.RECOVERED: Severity.SUCCESS,
    NoticeKind.SUCCEEDED: Severity.SUCCESS,
}


def severity_of(deliveries: Sequence[Delivery]) -> Severity:
    """The worst of these."""
    return min((_of_one(delivery) for delivery in deliveries), key=_ORDER.index)


def _of_one(delivery: Delivery) -> Severity:
    if delivery.kind is NoticeKind.DIGEST:
        return _of_summary(delivery.data)
    return _OF_KINDS.get(delivery.kind, Severity.INFO)


def _of_summary(data: Mapping[str, Any]) -> Severity:
    """Of what it counts. What succeeded with errors is among the failed ones, and not in their state."""
    states: Mapping[str, int] = data.get("states") or {}
    if data.get("failed") or states.get(RunState.FAILED):
        return Severity.FAILURE
    if data.get("open") or states.get(RunState.MISSED) or states.get(RunState.EXPIRED):
        return Severity.WARNING
    return Severity.SUCCESS if states.get(RunState.SUCCEEDED) else Severity.INFO
