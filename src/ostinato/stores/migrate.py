"""Numbered SQL migrations, forward only. Each store runs them under its own lock; this page finds and checks them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.resources import files

from ostinato.errors import SchemaTooNew

__all__ = ["Migration", "load_migrations", "pending"]

_NAME = re.compile(r"(\d{4})_([a-z0-9_]+)\.sql")


@dataclass(frozen=True, slots=True)
class Migration:
    """One step of the schema."""

    version: int
    name: str
    sql: str


def load_migrations(package: str) -> tuple[Migration, ...]:
    """The migrations in the folder `migrations` of a store's package, in order and without a gap."""
    found = []
    for entry in files(package).joinpath("migrations").iterdir():
        match = _NAME.fullmatch(entry.name)
        if match:
            found.append(Migration(int(match[1]), match[2], entry.read_text(encoding="utf-8")))
    found.sort(key=lambda migration: migration.version)
    if [migration.version for migration in found] != list(range(1, len(found) + 1)):
        raise RuntimeError(f"the migrations of {package} are not numbered 0001, 0002, … without a gap")
    return tuple(found)


def pending(migrations: tuple[Migration, ...], current: int, url: str) -> tuple[Migration, ...]:
    """What is still to be run; SchemaTooNew if the database is ahead of the program."""
    latest = migrations[-1].version
    if current > latest:
        raise SchemaTooNew(
            f"{url} has schema version {current}, but this Ostinato knows only up to {latest}: "
            "upgrade it with 'pip install --upgrade ostinato'"
        )
    return migrations[current:]
