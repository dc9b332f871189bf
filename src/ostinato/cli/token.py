"""`ostinato token`: secrets for scripts and other machines."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from cyclopts import App

from ostinato.cli.console import Cell, Column, Styled, emit, emit_json, plain, say, table, tell
from ostinato.cli.open_database import OpenDatabase, opened, os_user
from ostinato.cli.options import NO_COMMON, Common
from ostinato.cli.times import full, span
from ostinato.errors import NotFound

if TYPE_CHECKING:
    from ostinato.models.access import Token

__all__ = ["app"]

app = App(name="token", help="Add, list and remove tokens for scripts and other machines.")


@app.command
def add(name: str, /, *, role: str, expires: str | None = None, common: Common = NO_COMMON) -> None:
    """Create a token and print its secret, which is shown only once.

    Parameters
    ----------
    name
        Its name; the audit log shows it.
    role
        What it may do: viewer (read), operator (act too) or admin (create shell and agent work too).
    expires
        When it expires, such as 90d. [default: never]
    """
    with opened(common, create=True) as database:
        made, secret = database.ask(database.services.access.make_token(name, role, os_user(), expires))
        if common.json:
            emit_json({**plain(made), "token": secret})
            return
        emit(secret)
        until = "" if made.expires_at is None else f", until {full(made.expires_at, database.zone)}"
        say(f"added: token {name!r}, {made.role}{until}; its secret is shown only this once")


@app.command
def ls(*, common: Common = NO_COMMON) -> None:
    """List tokens: who created them, when they were last used, when they expire."""
    with opened(common) as database:
        tokens = database.ask(database.services.access.tokens())
        if common.json:
            emit_json(tokens)
            return
        now = database.now
    titles = ("ROLE", "OWNER", "USED", "EXPIRES")
    columns = [Column("ID"), Column("NAME", flexible=True), *(Column(title) for title in titles)]
    none = "no tokens: create one with 'ostinato token add NAME --role viewer'"
    table(columns, [_row(token, now) for token in tokens], otherwise=none)


def _row(token: Token, now: datetime) -> list[Cell]:
    used = "never" if token.used_at is None else f"{span((now - token.used_at).total_seconds())} ago"
    expires: Cell = "never"
    if token.expires_at is not None:
        left = (token.expires_at - now).total_seconds()
        expires = f"in {span(left)}" if left > 0 else Styled("expired", "red")
    return [str(token.id), token.name, str(token.role), token.owner, used, expires]


@app.command
def rm(name: str, /, *, common: Common = NO_COMMON) -> None:
    """Revoke a token at once, and the logins that were made with it.

    Parameters
    ----------
    name
        Its name or its id.
    """
    with opened(common) as database:
        token = _find(database, name)
        database.ask(database.services.access.remove_token(token.id))
    removed = {"id": token.id, "name": token.name, "removed": True}
    tell(removed, f"removed: token {token.name!r}", as_json=common.json)


def _find(database: OpenDatabase, name: str) -> Token:
    tokens = database.ask(database.services.access.tokens())
    for key in ("name", "id"):
        for token in tokens:
            if str(getattr(token, key)) == name:
                return token
    raise NotFound(f"there is no token {name!r}; 'ostinato token ls' lists them")
