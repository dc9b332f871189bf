"""`ostinato task`: which tasks can be run, and who knows them."""

from __future__ import annotations

from typing import Any

from cyclopts import App

from ostinato.cli.console import Cell, Column, emit_json, table
from ostinato.cli.open_database import OpenDatabase, opened
from ostinato.cli.options import NO_COMMON, Common
from ostinato.models.work_kinds import is_task

__all__ = ["app"]

app = App(name="task", help="List the tasks that can be run.")


@app.command
def ls(*, common: Common = NO_COMMON) -> None:
    """List tasks: those of --app, and those that running nodes know."""
    with opened(common) as database:
        tasks = _tasks(database)
    if common.json:
        emit_json(tasks)
        return
    rows: list[list[Cell]] = [
        [
            task["name"],
            task["kind"] or "-",
            ", ".join((["--app"] if task["app"] else []) + task["nodes"]) or "-",
            task["description"] or "",
        ]
        for task in tasks
    ]
    columns = [Column("NAME", True), Column("KIND"), Column("KNOWN BY", True), Column("WHAT", True)]
    table(columns, rows, otherwise="no tasks: name your app with --app module:attr, or start a node with 'ostinato up'")


def _tasks(database: OpenDatabase) -> list[dict[str, Any]]:
    nodes = [node for node in database.ask(database.services.nodes.list()) if node.state != "lost"]
    here = database.app.registry.tasks
    found = []
    for name in sorted({*here, *(task for node in nodes for task in filter(is_task, node.tasks))}):
        definition = here.get(name)
        kind = description = None
        if definition is not None:
            kind = "process" if definition.isolation == "process" else "async" if definition.is_async else "sync"
            description = (definition.function.__doc__ or "").strip().partition("\n")[0] or None
        known_by = [str(node.id) for node in nodes if name in node.tasks]
        found.append(
            {
                "name": name,
                "kind": kind,
                "description": description,
                "app": definition is not None,
                "nodes": known_by,
            }
        )
    return found
