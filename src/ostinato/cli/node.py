"""`ostinato node`: which processes have a started engine, and which of them shall take no more work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cyclopts import App

from ostinato.cli.console import Cell, Column, Styled, emit_json, say, table
from ostinato.cli.open_database import OpenDatabase, opened
from ostinato.cli.options import NO_COMMON, Common, NodeName
from ostinato.cli.times import span

if TYPE_CHECKING:
    from ostinato.models.node import Node

__all__ = ["app"]

app = App(name="node", help="List, drain and resume nodes: processes whose engine is started.")

_STYLES = {"alive": "green", "draining": "yellow", "lost": "red"}


@app.command
def ls(*, common: Common = NO_COMMON) -> None:
    """List nodes: alive, draining, or recently lost."""
    with opened(common) as database:
        nodes = database.ask(database.services.nodes.list())
        if common.json:
            from ostinato.service.answers import node_answer

            emit_json([node_answer(node) for node in nodes])
            return
        now, none = database.now, _none(database)
        rows: list[list[Cell]] = [
            [
                node.id,
                Styled(node.state, _STYLES.get(node.state, "")),
                f"{node.running}/{node.slots}",
                str(len(node.tasks)),
                span((now - node.started_at).total_seconds()),
                span((now - node.seen_at).total_seconds()),
            ]
            for node in nodes
        ]
    titles = ("STATE", "RUNNING", "TASKS", "UP", "SEEN")
    table([Column("ID", flexible=True), *(Column(title) for title in titles)], rows, otherwise=none)


@app.command
def drain(id: NodeName, /, *, common: Common = NO_COMMON) -> None:
    """Stop a node from taking work: its active runs may end, other nodes go on, and its process stays.

    It takes effect at once, and lasts until the node restarts.
    """
    with opened(common) as database:
        drained = [database.ask(database.services.nodes.drain(one)) for one in _meant(database, id)]
        _tell(database, drained, "is draining", common)


@app.command
def resume(id: NodeName, /, *, common: Common = NO_COMMON) -> None:
    """Let a drained node take work again."""
    with opened(common) as database:
        resumed = [database.ask(database.services.nodes.resume(one)) for one in _meant(database, id)]
        _tell(database, resumed, "takes work again", common)


def _meant(database: OpenDatabase, id: str) -> list[str]:
    if id != "all":
        return [id]
    return [node.id for node in database.ask(database.services.nodes.list()) if node.state != "lost"]


def _tell(database: OpenDatabase, nodes: list[Node], what: str, common: Common) -> None:
    if common.json:
        from ostinato.service.answers import node_answer

        emit_json([node_answer(node) for node in nodes])
        return
    for node in nodes:
        say(f"node {node.id!r} {what}, {node.running} running")
    if not nodes:
        say(_none(database))


def _none(database: OpenDatabase) -> str:
    """That there are no nodes, and what to do."""
    none, off = "no engine is running on this database", database.switched_off
    return f"{none}: start one with 'ostinato worker'" if off is None else f"{none}; {off}"
