"""Quarantine: rows that break the rules of the ledger. Each is set aside with its reason, and the rest goes on."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

__all__ = ["BadRow", "Quarantined"]


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that breaks a rule and has not been set aside yet."""

    table: str
    row: str
    """Its primary key, as text."""
    reason: str


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A row that was set aside: it was ended, switched off, repaired or removed, and this is what it said before."""

    id: int
    table: str
    row: str
    """Its primary key."""
    reason: str
    at: datetime
    content: str
    """The whole row as it was, as JSON."""
