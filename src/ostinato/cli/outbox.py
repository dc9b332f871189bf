"""`ostinato outbox`: the table in another database through which its transactions enqueue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from ostinato.cli.console import Cell, Column, Styled, confirmed, emit_json, say, table, tell
from ostinato.cli.open_database import load_app, project_app
from ostinato.cli.options import NO_COMMON, Common, Yes
from ostinato.cli.times import brief
from ostinato.errors import InvalidInput, NotFound
from ostinato.plurals import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from ostinato.app import Ostinato
    from ostinato.integrations.transactions.outbox import Outbox
    from ostinato.models.outbox import OutboxRow

__all__ = ["app"]

app = App(name="outbox", help="Create outboxes in other databases; list, retry and remove what waits in them.")

_STYLES = {"waiting": "", "refused": "yellow", "failed": "red"}
_ALL = "all"
Url = Annotated[
    str | None, Parameter(help="Where it is, such as shop.db or sqlite:///shop.db; by default those of --app.")
]
Row = Annotated[str, Parameter(help="The ID of its row, as 'outbox ls' shows it.")]
RowOrAll = Annotated[str, Parameter(help="The ID of its row, as 'outbox ls' shows it, or all.")]


@app.command
def create(url: Url = None, /, *, common: Common = NO_COMMON) -> None:
    """Make the table ostinato_outbox in a database, if it is not there."""
    for outbox in _outboxes(load_app(common), url):
        outbox.create()
        tell({"outbox": outbox.name}, f"created: outbox {outbox.name}", as_json=common.json)


@app.command
def ls(url: Url = None, /, *, common: Common = NO_COMMON) -> None:
    """List what waits in an outbox and what was refused, with the reason, the oldest first."""
    from ostinato.clock import from_micros
    from ostinato.integrations.transactions.outbox import LISTED

    loaded = load_app(common)
    outboxes = _outboxes(loaded, url)
    found = [(outbox.name, outbox.list()) for outbox in outboxes]
    if common.json:
        emit_json([_shape(name, row) for name, rows in found for row in rows])
        return
    zone, now = loaded.settings.tz, from_micros(loaded.clock.now())
    columns = [Column("ID"), Column("TASK", True), Column("STATE"), Column("ENQUEUED"), Column("TRIES")]
    columns += [Column("ERROR", True)]
    lines: list[list[Cell]] = []
    for name, rows in found:
        for row in rows:
            state = Styled(row.state, _STYLES[row.state])
            shown: list[Cell] = [row.id, row.task, state, brief(row.created_at, zone, now), str(row.tries)]
            lines.append([*([name] if len(found) > 1 else []), *shown, row.error or ""])
        if len(rows) == LISTED:
            say(f"the oldest {LISTED:,} rows of {name} are listed")
    table([*([Column("OUTBOX", True)] if len(found) > 1 else []), *columns], lines, otherwise="nothing waits")


@app.command
def retry(row: RowOrAll, url: Url = None, /, *, common: Common = NO_COMMON) -> None:
    """Have a row that was refused or given up tried again, as if it were new; 'all' means every one of them."""
    outboxes = _outboxes(load_app(common), url)
    if row == _ALL:
        count = sum(outbox.retry() for outbox in outboxes)
        tell({"retried": count}, f"{counted(count, 'row is', 'rows are')} tried again", as_json=common.json)
        return
    name = _in_one(outboxes, lambda outbox: outbox.retry(row))
    tell({"retried": 1}, f"row {row} is tried again, out of {name}", as_json=common.json)


@app.command
def rm(row: Row, url: Url = None, /, *, yes: Yes = False, common: Common = NO_COMMON) -> int:
    """Remove a row: its run is never enqueued, unless a node is taking it just now. On a terminal it asks first."""
    outboxes = _outboxes(load_app(common), url)
    if not yes and not confirmed(f"remove row {row}?", "the run of this row would never be enqueued"):
        return 1
    name = _in_one(outboxes, lambda outbox: outbox.remove(row))
    tell({"removed": row, "outbox": name}, f"removed: row {row} of {name}", as_json=common.json)
    return 0


def _in_one(outboxes: Sequence[Outbox], use: Callable[[Outbox], object]) -> str:
    """Use the outbox that has the row; answers its name."""
    for outbox in outboxes[:-1]:
        try:
            use(outbox)
        except NotFound:
            continue
        return outbox.name
    use(outboxes[-1])
    return outboxes[-1].name


def _outboxes(loaded: Ostinato, url: str | None) -> Sequence[Outbox]:
    if url is not None:
        return [loaded.outbox(url)]
    if not loaded.outboxes:
        hint = "give its URL, or --app module:attr of an app that adds some"
        if project_app.get() is not None:
            hint = "give its alias in DATABASES or its URL, or let a tasks.py add it with jobs.add_outbox(…)"
        raise InvalidInput("no outbox is named", field="url", hint=hint)
    return loaded.outboxes


def _shape(name: str, row: OutboxRow) -> dict[str, Any]:
    return {
        "outbox": name,
        "id": row.id,
        "task": row.task,
        "created_at": row.created_at,
        "state": row.state,
        "tries": row.tries,
        "try_at": row.try_at,
        "error": row.error,
    }
