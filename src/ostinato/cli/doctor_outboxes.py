"""What `ostinato doctor` finds in outboxes: those that are not there or that nobody drains, and what was refused."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ostinato.cli.finding import Finding
from ostinato.errors import OstinatoError
from ostinato.models.outbox import OUTBOX_SERVICE
from ostinato.plurals import counted

if TYPE_CHECKING:
    from ostinato.integrations.transactions.outbox import Outbox
    from ostinato.models.node import Node
    from ostinato.models.outbox import OutboxRow

__all__ = ["examine_outboxes"]


def examine_outboxes(outboxes: Sequence[Outbox], alive: Sequence[Node]) -> Iterator[Finding]:
    """The outboxes of the app, and what running nodes say of those that they drain."""
    for outbox in outboxes:
        yield from _examine(outbox, alive)
    own = {f"{OUTBOX_SERVICE}{outbox.name}" for outbox in outboxes}
    for node in alive:
        for name, how in node.services.items():
            if name.startswith(OUTBOX_SERVICE) and name not in own and not how.get("well", True):
                text = f"{name.removeprefix(OUTBOX_SERVICE)} cannot be drained on {node.id}: {how.get('status')}"
                yield Finding("outboxes", "warn", text, "see its log")


def _examine(outbox: Outbox, alive: Sequence[Node]) -> Iterator[Finding]:
    try:
        rows = outbox.list()
    except OstinatoError as error:
        yield Finding("outboxes", "fail", str(error))
        return
    bad = [*_refused(outbox, rows)]
    yield from bad
    if not any(f"{OUTBOX_SERVICE}{outbox.name}" in node.services for node in alive):
        inside = f"; {counted(len(rows), 'row is', 'rows are')} in it" if rows else ""
        fix = "start an engine of this app, such as 'ostinato worker'"
        yield Finding("outboxes", "warn", f"{outbox.name}: no running node drains it{inside}", fix)
    elif not bad:
        yield Finding("outboxes", "ok", f"{outbox.name} is drained, {counted(len(rows), 'row')} in it")


def _refused(outbox: Outbox, rows: Sequence[OutboxRow]) -> Iterator[Finding]:
    words = {
        "failed": ("row was given up", "rows were given up"),
        "refused": ("row is refused and tried again", "rows are refused and tried again"),
    }
    for state, counting in words.items():
        if found := [row for row in rows if row.state == state]:
            first = found[0]
            text = (
                f"{outbox.name}: {counted(len(found), *counting)}; row {first.id} of task {first.task!r}: {first.error}"
            )
            fix = "mend that, then 'ostinato outbox retry all'; or remove a row with 'ostinato outbox rm ID'"
            yield Finding("outboxes", "warn", text, fix)
