"""What people are told of the end of a run, and of a schedule that it switched off. Below: run.py."""

from __future__ import annotations

from dataclasses import replace

from ostinato.models.incident import SWITCHED_OFF, Notice
from ostinato.models.notification import NoticeKind
from ostinato.models.run import Finish, is_failing
from ostinato.models.states import RunState

__all__ = ["broken_notice", "notice_of"]


def notice_of(finish: Finish) -> Notice:
    """What is told of an end."""
    kind = NoticeKind.RUN
    if is_failing(finish):
        kind = NoticeKind.FAILED
    elif finish.state is RunState.SUCCEEDED:
        kind = NoticeKind.SUCCEEDED
    elif finish.state is RunState.EXPIRED:
        kind = NoticeKind.MISSED
    return Notice(
        kind,
        finish.told_as,
        finish.finished_at,
        cause=str(finish.cause or finish.state),
        reason=finish.reason,
        run=finish.id,
        schedule=finish.schedule,
        schedule_id=finish.schedule_id,
        project=finish.project,
        due_at=finish.due_at,
        notify=finish.notify,
        closes=kind is NoticeKind.SUCCEEDED,
    )


def broken_notice(finish: Finish) -> Notice:
    """What is told of a schedule that this end switched off."""
    return replace(notice_of(finish), kind=NoticeKind.BROKEN, cause=SWITCHED_OFF, reason=finish.broken, closes=False)
