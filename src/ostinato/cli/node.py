"""`ostinato node`: which processes have a started engine."""

from __future__ import annotations

from cyclopts import App

from ostinato.cli.console import Cell, Column, Styled, emit_json, say, table
from ostinato.cli.opening import opened
from ostinato.cli.options import NO_COMMON, Common
from ostinato.cli.times import span

__all__ = ["app"]

app = App(name="node", help="Processes whose engine is started.")

_STYLES = {"alive": "green", "draining": "yellow", "lost": "red"}


@app.command
def ls(*, common: Common = NO_COMMON) -> None:
    """List nodes: alive, draining, or lately lost."""
    with opened(common) as visit:
        nodes = visit.ask(visit.services.nodes.list())
        if common.json:
            from ostinato.service.shapes import node_shape

            emit_json([node_shape(node) for node in nodes])
            return
        now = visit.now
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
    if rows:
        titles = ("STATE", "RUNNING", "TASKS", "UP", "SEEN")
        table([Column("ID", flexible=True), *(Column(title) for title in titles)], rows)
    else:
        say("no engine is running on this database: start one with 'ostinato up'")
