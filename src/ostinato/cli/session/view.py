"""How sessions look: the table of `session ls`, the page of `session show`, and the line of an event."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from ostinato.cli.console import (
    Cell,
    Column,
    Styled,
    clean,
    emit,
    emit_json,
    emit_json_line,
    fields,
    plain,
    rich_console,
    say,
    table,
)
from ostinato.cli.run_view import state_cell, state_style
from ostinato.cli.times import brief, full, span
from ostinato.cli.work_view import name_of, work_cell
from ostinato.plurals import counted

if TYPE_CHECKING:
    from ostinato.cli.open_database import OpenDatabase
    from ostinato.models.event import Event
    from ostinato.models.run import Run
    from ostinato.models.session import Session, Stopped

__all__ = ["context_line", "print_event", "print_session", "print_sessions", "stopped_line", "usage_line"]

_MOST = 1_000
_LATEST = 10
_STYLES = {"started": "cyan", "dropped": "yellow", "stopped": "red"}


def print_sessions(database: OpenDatabase, sessions: Sequence[Session], *, as_json: bool) -> None:
    """A table, the latest message first; JSON is the whole list."""
    if as_json:
        emit_json(sessions)
        return
    now, has_cost = database.now, any(session.cost_usd for session in sessions)
    rows: list[list[Cell]] = [
        [
            session.key,
            f"{session.running}/{session.max_concurrent}",
            str(session.queued),
            _age(session.oldest_at, now),
            _age(session.sent_at, now),
            _age(session.stopped_at, now),
            *([_dollars(session.cost_usd) if session.cost_usd else "-"] if has_cost else []),
            Styled("throttled", "yellow") if session.throttled else "",
        ]
        for session in sessions
    ]
    titles = ("RUNNING", "QUEUED", "OLDEST", "SENT", "STOPPED", *(["COST"] if has_cost else []), "")
    table([Column("KEY", flexible=True), *(Column(title) for title in titles)], rows)
    say(counted(len(sessions), "session"), "dim")


def _age(moment: datetime | None, now: datetime) -> str:
    return "-" if moment is None else span((now - moment).total_seconds())


def _dollars(amount: float) -> str:
    """Money as people write it; less than a cent is not nothing."""
    return f"${amount:,.2f}" if amount >= 0.01 else f"${amount:.4f}"


def usage_line(session: Session) -> str | None:
    """What its runs have used so far; None if none of them told."""
    used = [
        _dollars(session.cost_usd) if session.cost_usd else "",
        f"{session.tokens_in:,} tokens in, {session.tokens_out:,} out"
        if session.tokens_in or session.tokens_out
        else "",
        counted(session.turns, "turn") if session.turns else "",
    ]
    return ", ".join(filter(None, used)) or None


def context_line(session: Session) -> str | None:
    """How full the context of its agent is, as that told last."""
    if session.context_used is None:
        return None
    if not session.context_window:
        return f"{session.context_used:,} tokens"
    share = session.context_used / session.context_window
    return f"{session.context_used:,} of {session.context_window:,} tokens, {share:.0%}"


def stopped_line(key: str, stopped: Stopped) -> str:
    """What a stop did."""
    counts = f"{stopped.cancelled} cancelled, {stopped.dropped} dropped"
    is_idle = not stopped.cancelled and not stopped.dropped
    return f"nothing to stop in session {key!r}: {counts}" if is_idle else f"stopped: session {key!r}, {counts}"


def print_session(database: OpenDatabase, session: Session, *, as_json: bool) -> None:
    """All of one session: its settings, its runs that have not ended, its latest events."""
    services = database.services
    runs = database.ask(services.runs.list(session=session.key, state=("queued", "running"), limit=_MOST))[::-1]
    events = database.ask(services.sessions.events(session.key, limit=_LATEST, newest=True))
    if as_json:
        from ostinato.service.answers import run_answer

        emit_json({**plain(session), "runs": [run_answer(run, database.zone) for run in runs], "events": events})
        return
    now, zone = database.now, database.zone
    stopped = session.stopped_at
    oldest = "" if session.oldest_at is None else f", the oldest for {_age(session.oldest_at, now)}"
    fields(
        [
            ("session", session.key),
            ("running", f"{session.running} of at most {session.max_concurrent}"),
            ("queued", f"{session.queued}{oldest}"),
            ("throttled", Styled("one at a time: its context is nearly full", "yellow") if session.throttled else None),
            ("used", usage_line(session)),
            ("context", context_line(session)),
            ("last sent", f"{full(session.sent_at, zone)}, {_age(session.sent_at, now)} ago"),
            ("stopped", None if stopped is None else f"{full(stopped, zone)}: earlier messages do not start"),
        ]
    )
    if runs:
        emit()
        titles = ("RUN", "STATE", "FOR", "LANE")
        columns = [Column(title) for title in titles] + [Column(title, flexible=True) for title in ("TASK", "WITH")]
        table(columns, [_run_row(run, now) for run in runs])
    if events:
        emit()
        columns = [Column(title) for title in ("AT", "EVENT", "RUN")] + [Column("WHAT", flexible=True)]
        table(columns, [_event_row(event, zone, now) for event in events])


def _run_row(run: Run, now: datetime) -> list[Cell]:
    from ostinato.models.work import Agent

    since = run.started_at if run.state == "running" and run.started_at is not None else run.due_at
    return [
        str(run.id),
        state_cell(run),
        _age(since, now),
        run.lane,
        f"agent {run.work.cli}" if isinstance(run.work, Agent) and run.schedule is None else name_of(run),
        run.reason if run.state == "queued" and run.reason else _with(run),
    ]


def _with(run: Run) -> str:
    """What it works on: payloads, arguments or a prompt."""
    from ostinato.models.work import Agent, Function

    if isinstance(run.work, Agent):
        return work_cell(run.work)
    given = run.work.kwargs.get("payloads", run.work.kwargs) if isinstance(run.work, Function) else None
    return json.dumps(given, ensure_ascii=False) if given else ""


def _event_row(event: Event, zone: str, now: datetime) -> list[Cell]:
    run = "-" if event.run is None else str(event.run)
    return [brief(event.at, zone, now), Styled(str(event.kind), _style(event)), run, _what(event)]


def print_event(database: OpenDatabase, event: Event, *, as_json: bool) -> None:
    """One line, at once: its number, when, what and of which session and run."""
    if as_json:
        emit_json_line(event)
        return
    from rich.text import Text

    run = "" if event.run is None else f", run {event.run}"
    what = _what(event)
    line = Text.assemble(
        (f"{event.id:>6}  {brief(event.at, database.zone, database.now):11}  ", "dim"),
        (f"{event.kind:10}", _style(event)),
        " ",
        clean(f"{event.session}{run}" + (f": {what}" if what else "")),
    )
    rich_console(sys.stdout).print(line)
    sys.stdout.flush()


def _style(event: Event) -> str:
    state = "errors" if event.data.get("cause") == "errors" else event.data.get("state", "")
    return _STYLES.get(event.kind) or state_style(str(state))


def _what(event: Event) -> str:
    """What the event says beyond its kind."""
    data = event.data
    match str(event.kind):
        case "debounced":
            return f"goes with run {data.get('into')}"
        case "stopped":
            return f"{data.get('cancelled', 0)} cancelled, {data.get('dropped', 0)} dropped"
        case "started":
            return f"attempt {data['attempt']}" if data.get("attempt", 1) > 1 else ""
        case "finished":
            return ": ".join(str(data[name]) for name in ("state", "reason") if data.get(name))
        case _:
            return str(data.get("reason") or "")
