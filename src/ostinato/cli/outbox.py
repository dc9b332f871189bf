"""`ostinato outbox`: the table in another database through which its transactions enqueue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from ostinato.cli.console import Cell, Column, Styled, emit_json, table, tell
from ostinato.cli.open_database import load_app
from ostinato.cli.options import NO_COMMON, Common
from ostinato.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ostinato.integrations.transactions.outbox import Outbox
    from ostinato.models.outbox import OutboxRow

__all__ = ["app"]

app = App(name="outbox", help="Create outboxes in other databases, and list what waits in them.")

_STYLES = {"waiting": "", "refused": "yellow", "failed": "red"}
Url = Annotated[str | None, Parameter(help="Where it is, such as sqlite:///shop.db; by default those of --app.")]


@app.command
def create(url: Url = None, /, *, common: Common = NO_COMMON) -> None:
    """Make the table ostinato_outbox in a database, if it is not there."""
    for outbox in _outboxes(url, common):
        outbox.create()
        tell({"outbox": outbox.name}, f"created: outbox {outbox.name}", as_json=common.json)


@app.command
def ls(url: Url = None, /, *, common: Common = NO_COMMON) -> None:
    """List what waits in an outbox and what was refused, with the reason, the oldest first."""
    found = [(outbox.name, row) for outbox in _outboxes(url, common) for row in outbox.list()]
    if common.json:
        emit_json([_shape(name, row) for name, row in found])
        return
    columns = [Column("ID"), Column("TASK", True), Column("STATE"), Column("TRIES"), Column("ERROR", True)]
    rows: list[list[Cell]] = [[row.id, row.task, _state(row), str(row.tries), row.error or ""] for _, row in found]
    table(columns, rows, otherwise="nothing waits")


def _outboxes(url: str | None, common: Common) -> Sequence[Outbox]:
    loaded = load_app(common)
    if url is not None:
        return [loaded.outbox(url)]
    if not loaded.outboxes:
        raise InvalidInput(
            "no outbox is named", field="url", hint="give its URL, or --app module:attr of an app that adds some"
        )
    return loaded.outboxes


def _state(row: OutboxRow) -> Cell:
    return Styled(row.state, _STYLES[row.state])


def _shape(name: str, row: OutboxRow) -> dict[str, Any]:
    return {
        "outbox": name,
        "id": row.id,
        "task": row.task,
        "created_at": row.created_at,
        "state": row.state,
        "tries": row.tries,
        "error": row.error,
    }
