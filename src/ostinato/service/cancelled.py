"""What this process is told of queued runs that somebody has cancelled."""

from __future__ import annotations

from ostinato.clock import Micros, from_micros
from ostinato.listeners import Listeners
from ostinato.models.app_event import AppEvent, AppEventKind
from ostinato.models.run import Run
from ostinato.run_log import log_cancelled

__all__ = ["tell_cancelled"]


def tell_cancelled(run: Run, listeners: Listeners, now: Micros) -> None:
    """The log says it, and whoever listens for it."""
    log_cancelled(run)
    if AppEventKind.RUN_CANCELLED in listeners.wanted:
        at = run.finished_at or from_micros(now)
        told = (run.id, run.schedule, run.task, run.state, run.cause, run.reason)
        listeners.tell([AppEvent(AppEventKind.RUN_CANCELLED, at, *told, attempt=run.attempt)])
