"""How it looks what keeps a run or a schedule from going on: lines of `show` and `why`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ostinato.cli.console import Cell, typed

if TYPE_CHECKING:
    from ostinato.models.blocking import BlockedBy

__all__ = ["blocked_fields"]


def blocked_fields(blocked: BlockedBy | None) -> list[tuple[str, Cell | None]]:
    """What holds it up, by which way, and what ends that."""
    if blocked is None:
        return []
    through = ", ".join(f"{link.kind} {link.name}" for link in blocked.chain)
    ends = None if blocked.command is None else typed(blocked.command)
    return [("blocked", blocked.sentence), ("through", through or None), ("to end it", ends)]
