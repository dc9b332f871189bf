"""Search as people type it: a text becomes a pattern in which every letter stands for both its cases.

The same for every store: `lower` of a database knows only the letters of its locale, SQLite's only ASCII.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ostinato.stores.sql.connection import Dialect

__all__ = ["glob_of", "matching", "regex_of"]


def matching(dialect: Dialect, search: str) -> tuple[str, str]:
    """How a column is looked through, and for what: plainly if that is enough, which is four times as fast."""
    if dialect == "sqlite":
        return "{} GLOB :search", glob_of(search)
    if search.isascii():
        return 'strpos(lower({} COLLATE "C"), :search) > 0', search.lower()
    return "{} ~ :search", regex_of(search)


def glob_of(text: str) -> str:
    """A GLOB pattern of SQLite for whatever holds this text."""
    # A pattern would end at a NUL.
    letters = text.replace("\0", "\ufffd")
    return f"*{''.join(_any_case(letter) or (f'[{letter}]' if letter in '*?[' else letter) for letter in letters)}*"


def regex_of(text: str) -> str:
    """A regular expression of PostgreSQL for the same."""
    return "".join(_any_case(letter) or _literal(letter) for letter in text)


def _any_case(letter: str) -> str | None:
    """A class of both cases of a letter; None if it has but one."""
    cases = sorted({letter, *(case for case in (letter.lower(), letter.upper()) if len(case) == 1)})
    return f"[{''.join(cases)}]" if len(cases) > 1 else None


def _literal(letter: str) -> str:
    return letter if letter.isalnum() or not letter.isascii() else f"\\{letter}"
