"""`ostinato why`: the answer to "why didn't it run?"."""

from __future__ import annotations

from ostinato.cli.blocked import blocked_fields
from ostinato.cli.console import emit_json, fields
from ostinato.cli.open_database import opened
from ostinato.cli.options import NO_COMMON, Common, ScheduleName
from ostinato.cli.run_view import state_text
from ostinato.cli.times import read_time

__all__ = ["why"]


def why(name: ScheduleName, /, *, at: str | None = None, common: Common = NO_COMMON) -> None:
    """Why a schedule did or did not run: the last time, or at a given time.

    Parameters
    ----------
    at
        The due time at or just before this: 2026-03-01T09:00Z, or "2026-03-01 09:00".
    """
    with opened(common) as database:
        moment = None if at is None else read_time(at, database.zone, field="at")
        answer = database.ask(database.services.why.why(database.schedule_name(name), moment))
        if common.json:
            from ostinato.service.answers import why_answer

            emit_json(why_answer(answer, database.zone))
            return
        run = answer.run
        shown = None if run is None else f"{run.id}, {state_text(run)}; 'ostinato run show {run.id}' shows all of it"
        blocked = blocked_fields(answer.blocked_by)
        fields([("answer", answer.answer), *blocked, ("run", shown), ("facts", "\n".join(answer.facts))])
