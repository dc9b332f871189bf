"""How many of what, as a person says it. For every text that counts: logs, reasons, errors and what commands print."""

from __future__ import annotations

__all__ = ["counted"]


def counted(number: float, noun: str, plural: str | None = None) -> str:
    """`1 run`, `2 runs`; with what follows, if that changes too: `1 run waits`, `2 runs wait`."""
    shown = f"{number:g}" if isinstance(number, float) else f"{number}"
    return f"{shown} {noun}" if number == 1 else f"{shown} {plural or f'{noun}s'}"
