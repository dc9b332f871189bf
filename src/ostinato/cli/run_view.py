"""How runs look: the table of `run ls`, the page of `run show`, and the one line of `ostinato up`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from ostinato.cli.console import Cell, Column, Styled, counted, emit_json, fields, say, table
from ostinato.cli.times import brief, full, span, took

if TYPE_CHECKING:
    from ostinato.cli.opening import Visit
    from ostinato.models.run import Attempt, Run

__all__ = ["print_run", "print_runs", "state_cell", "state_style"]

_STYLES = {"succeeded": "green", "failed": "red", "running": "cyan", "missed": "yellow", "expired": "yellow"}


def state_style(state: str) -> str:
    """The colour of a state."""
    return _STYLES.get(state, "")


def state_cell(state: str) -> Styled:
    """A state in its colour."""
    return Styled(str(state), state_style(state))


def print_runs(visit: Visit, runs: Sequence[Run], *, as_json: bool) -> None:
    """A table, the newest first; JSON is the whole list."""
    if as_json:
        from ostinato.service.shapes import run_shape

        emit_json([run_shape(run) for run in runs])
        return
    titles = ("ID", "DUE", "STATE", "TOOK", "TRY", "TRIGGER")
    columns = [Column(title) for title in titles] + [Column(title, flexible=True) for title in ("NAME", "REASON")]
    now, zone = visit.now, visit.zone
    rows = [_row(run, zone, now) for run in runs]
    if rows:
        table(columns, rows)
    say(f"{counted(len(runs), 'run')}, times in {zone}", "dim")


def _row(run: Run, zone: str, now: datetime) -> list[Cell]:
    under_way = run.started_at is not None and run.state == "running"
    return [
        str(run.id),
        brief(run.due_at, zone, now) + (f" ×{run.count}" if run.count > 1 else ""),
        state_cell(run.state),
        (span((now - run.started_at).total_seconds()) if under_way and run.started_at else "")
        or took(run.started_at, run.finished_at)
        or "-",
        str(run.attempt) if run.attempt else "-",
        str(run.trigger),
        run.schedule or run.task or "-",
        run.reason or "",
    ]


def print_run(visit: Visit, run: Run, *, as_json: bool) -> None:
    """All of one run."""
    from ostinato.service.shapes import run_shape

    shape = run_shape(run)
    if as_json:
        emit_json(shape)
        return
    zone = visit.zone
    many = f" and {run.count - 1} more, the last {full(run.last_due_at, zone)}" if run.last_due_at else ""
    work = ", ".join(
        f"{name} {json.dumps(value, ensure_ascii=False)}" for name, value in shape["work"].items() if value
    )
    pairs: list[tuple[str, Cell | None]] = [
        ("run", str(run.id)),
        ("state", state_cell(run.state)),
        ("reason", run.reason),
        ("schedule", run.schedule),
        ("work", work),
        ("trigger", str(run.trigger)),
        ("due", full(run.due_at, zone) + many),
        ("ready", None if run.ready_at == run.due_at else full(run.ready_at, zone)),
        ("started", None if run.started_at is None else full(run.started_at, zone)),
        ("finished", None if run.finished_at is None else full(run.finished_at, zone)),
        ("took", took(run.started_at, run.finished_at)),
        ("lane", f"{run.lane}, priority {run.priority}"),
        ("session", run.session),
        ("key", run.key),
        ("node", run.node),
        ("progress", _progress(run)),
        ("totals", ", ".join(f"{name} {value:g}" for name, value in run.totals.items())),
        ("result", None if run.result is None else json.dumps(run.result, ensure_ascii=False)),
        ("error", None if run.error is None else Styled(run.error, "red")),
    ]
    pairs += [(f"attempt {number}", _attempt(attempt, zone)) for number, attempt in enumerate(run.attempts, 1)]
    fields(pairs)


def _attempt(attempt: Attempt, zone: str) -> str:
    parts = [attempt.state, full(attempt.started_at, zone), took(attempt.started_at, attempt.finished_at)]
    error = (attempt.error or "").strip().splitlines()
    parts += [f"on {attempt.node}" if attempt.node else "", error[-1] if error else ""]
    return ", ".join(part for part in parts if part)


def _progress(run: Run) -> str | None:
    progress = run.progress
    if progress is None:
        return None
    amount = f"{progress.done:g}" + ("" if progress.total is None else f" of {progress.total:g}")
    return f"{amount} {progress.text}".strip()
