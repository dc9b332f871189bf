"""How runs look: the table of `run ls`, the page of `run show`, and the one line of `ostinato up`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ostinato.cli.blocked import blocked_fields
from ostinato.cli.console import Cell, Column, Styled, as_typed, emit_json, fields, say, table
from ostinato.cli.times import brief, full, span, took
from ostinato.cli.work_view import name_of, work_page
from ostinato.plurals import amount, counted, totals_text

if TYPE_CHECKING:
    from ostinato.cli.open_database import OpenDatabase
    from ostinato.models.run import Attempt, Run
    from ostinato.models.upstream import RelatedRun

__all__ = ["print_run", "print_runs", "state_cell", "state_style", "state_text", "tell"]

_TEXTS = ("text", "report")
"""What a result holds for people to read: an agent's answer and its report."""

_STYLES = {"succeeded": "green", "failed": "red", "running": "cyan"} | dict.fromkeys(
    ("errors", "missed", "expired"), "yellow"
)


def state_style(state: str) -> str:
    """The colour of a state."""
    return _STYLES.get(state, "")


def state_cell(run: Run) -> Styled:
    """A run's state in its colour; one that succeeded with errors says how many."""
    return Styled(state_text(run), state_style("errors" if run.cause == "errors" else run.state))


def state_text(run: Run) -> str:
    """A run's state, as it is told of it: `succeeded, 3 errors`."""
    return f"{run.state}, {run.reason}" if run.cause == "errors" else str(run.state)


def print_runs(database: OpenDatabase, runs: Sequence[Run], *, as_json: bool) -> None:
    """A table, the newest first; JSON is the whole list."""
    if as_json:
        from ostinato.service.answers import run_answer

        emit_json([run_answer(run, database.zone) for run in runs])
        return
    now, zone = database.now, database.zone
    columns = [Column(title) for title in ("ID", "DUE", "STATE")]
    columns += [Column(title, optional=True) for title in ("TOOK", "TRY", "TRIGGER")]
    columns.append(Column("NAME", flexible=True))
    rows = [_row(run, zone, now) for run in runs]
    totals, reasons = [_totals(run) for run in runs], [_reason(run) for run in runs]
    # One column, and only where there is something to say: most runs have one of the two, and each takes room.
    titles = [title for title, told in (("TOTALS", totals), ("REASON", reasons)) if any(told)]
    if titles:
        columns.append(Column(", ".join(titles), flexible=True))
        said = ["; ".join(filter(None, told)) for told in zip(totals, reasons, strict=True)]
        rows = [[*row, text] for row, text in zip(rows, said, strict=True)]
    table(columns, rows)
    say(f"{counted(len(runs), 'run')}, times in {zone}", "dim")


def _row(run: Run, zone: str, now: datetime) -> list[Cell]:
    under_way = run.started_at is not None and run.state == "running"
    return [
        str(run.id),
        brief(run.due_at, zone, now) + (f" ×{run.count}" if run.count > 1 else ""),
        state_cell(run),
        (span((now - run.started_at).total_seconds()) if under_way and run.started_at else "")
        or took(run.started_at, run.finished_at)
        or "-",
        str(run.attempt) if run.attempt else "-",
        str(run.trigger),
        name_of(run),
    ]


def _totals(run: Run) -> str:
    """What it counted; of errors, the state says how many there were."""
    totals = run.totals
    return totals_text({name: totals[name] for name in totals if run.cause != "errors" or name != "errors"})


def _reason(run: Run) -> str:
    """Why; of errors, the state says it."""
    return "" if run.cause == "errors" else as_typed(run.reason or "")


def print_run(database: OpenDatabase, run: Run, *, as_json: bool, explain: bool = False) -> None:
    """All of one run; with what keeps it from starting, if it is to be explained."""
    from ostinato.service.answers import run_answer

    blocked = database.ask(database.services.blocking.of_run(run)) if explain else None
    if as_json:
        answer = run_answer(run, database.zone)
        if explain:
            answer.blocked_by = blocked
        emit_json(answer)
        return
    zone = database.zone
    related = database.ask(database.services.runs.relations(run.id))
    many = f" and {run.count - 1} more, the last {full(run.last_due_at, zone)}" if run.last_due_at else ""
    pairs: list[tuple[str, Cell | None]] = [
        ("run", str(run.id)),
        ("state", state_cell(run)),
        ("cause", run.cause),
        ("reason", None if blocked is not None and blocked.sentence == run.reason else run.reason),
        *blocked_fields(blocked),
        *(("runs after", _related(one)) for one in related.upstreams),
        *(("followed by", _related(one)) for one in related.dependents),
        ("stopping", run.cancelling),
        ("cancelled by", run.cancelled_by),
        ("schedule", run.schedule),
        ("project", run.project),
        ("work", Styled(work_page(run.work), "")),
        ("trigger", str(run.trigger) + (f", by {run.started_by}" if run.started_by else "")),
        ("due", full(run.due_at, zone) + many),
        ("ready", None if run.ready_at == run.due_at else full(run.ready_at, zone)),
        ("started", None if run.started_at is None else full(run.started_at, zone)),
        ("finished", None if run.finished_at is None else full(run.finished_at, zone)),
        ("took", took(run.started_at, run.finished_at)),
        ("lane", f"{run.lane}, priority {run.priority}"),
        ("session", run.session),
        ("key", run.key),
        ("node", run.node),
        ("trace", run.trace_id),
        ("progress", _progress(run)),
        ("totals", totals_text(run.totals)),
        *_result(run.result),
        ("error", None if run.error is None else Styled(run.error, "red")),
    ]
    pairs += [(f"attempt {number}", _attempt(attempt, zone)) for number, attempt in enumerate(run.attempts, 1)]
    fields([*pairs, ("output", _output(database, run))])


def _related(one: RelatedRun) -> str:
    """A run that comes before or after this one."""
    of = one.schedule or one.task
    return f"run {one.id}{f' of {of}' if of else ''}: {one.state or 'removed'}"


def tell(run: Run) -> str:
    """How a run ended, on one line."""
    return f"run {run.id} {run.state}" + (f": {run.reason}" if run.reason else "")


def _result(result: Any) -> list[tuple[str, Cell | None]]:
    """A result; long texts in it, such as an agent's answer and report, stand for themselves."""
    if not isinstance(result, dict):
        return [("result", None if result is None else json.dumps(result, ensure_ascii=False))]
    texts = {name: value for name, value in result.items() if name in _TEXTS and isinstance(value, str) and value}
    rest = {name: value for name, value in result.items() if name not in texts and value is not None}
    pairs: list[tuple[str, Cell | None]] = [("result", json.dumps(rest, ensure_ascii=False) if rest else None)]
    return pairs + [(str(name), value) for name, value in texts.items()]


def _output(database: OpenDatabase, run: Run) -> str | None:
    """How to see what it printed."""
    lines = database.ask(database.services.runs.lines(run.id))
    if not run.ended and (lines or run.state == "running"):
        return f"'ostinato run logs {run.id} -f' follows it"
    count = max((line.number or 0 for line in lines), default=0)
    return f"{counted(count, 'line')}; 'ostinato run logs {run.id}' prints it" if count else None


def _attempt(attempt: Attempt, zone: str) -> str:
    parts = [attempt.state, full(attempt.started_at, zone), took(attempt.started_at, attempt.finished_at)]
    error = (attempt.error or "").strip().splitlines()
    parts += [f"on {attempt.node}" if attempt.node else "", error[-1] if error else ""]
    return ", ".join(part for part in parts if part)


def _progress(run: Run) -> str | None:
    progress = run.progress
    if progress is None:
        return None
    far = amount(progress.done) + ("" if progress.total is None else f" of {amount(progress.total)}")
    return f"{far} {progress.text}".strip()
