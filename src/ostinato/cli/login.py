"""`ostinato login`: a link that logs a browser in, once. `ostinato logout`: end what such links began."""

from __future__ import annotations

from urllib.parse import quote

from ostinato.cli.console import emit, emit_json, say, tell
from ostinato.cli.open_database import opened, os_user
from ostinato.cli.options import NO_COMMON, Common
from ostinato.errors import InvalidInput, NotFound
from ostinato.plurals import counted

__all__ = ["login", "logout"]

ALL = "all"


def login(
    *,
    role: str = "admin",
    who: str | None = None,
    host: str | None = None,
    port: int | None = None,
    https: bool = False,
    prefix: str = "",
    common: Common = NO_COMMON,
) -> None:
    """Print a link that logs a browser in. It works once, for 15 minutes.

    Parameters
    ----------
    role
        What the browser may do: viewer, operator or admin. [default: admin]
    who
        The name that the audit log shows. [default: you]
    host
        The server's address, if it is not the one of the settings.
    port
        The server's port, if it is not the one of the settings.
    https
        The server speaks TLS, although the settings name no certificate.
    prefix
        The path that it is mounted at in another app, such as /jobs.
    """
    with opened(common, host=host, port=port) as database:
        settings = database.app.settings
        if settings.port == 0:
            raise InvalidInput("port 0 means any free port", field="port", hint="give the port that the server printed")
        name = who or os_user()
        code = database.ask(database.services.access.make_code(who=name, role=role))
        from ostinato.cli.server import address_text, login_link

        place = f"/{quote(prefix.strip('/'))}" if prefix.strip("/") else ""
        link = login_link(address_text(settings, settings.port, https=https) + place, code)
    if common.json:
        emit_json({"link": link, "code": code, "who": name, "role": role})
        return
    emit(link)
    server = "the app that it is mounted in" if place else "'ostinato up' or 'ostinato web'"
    say(f"works once, for 15 minutes; {server} must be running")


def logout(who: str, /, *, common: Common = NO_COMMON) -> None:
    """Log a user's browsers out at once, and revoke their unused links. Tokens stay.

    Parameters
    ----------
    who
        The name that the audit log shows, or `all` for everybody.
    """
    with opened(common) as database:
        access = database.services.access
        names = sorted({login.who for login in database.ask(access.logins())})
        ended = database.ask(access.end_logins(None if who == ALL else who))
    if not ended and who != ALL:
        there = ", ".join(map(repr, names)) or "nobody"
        raise NotFound(f"{who!r} is not logged in and has no unused link; logged in: {there}")
    whose = "everybody" if who == ALL else repr(who)
    text = f"ended: {counted(ended, 'login')} of {whose}, and all unused links"
    tell({"who": who, "ended": ended}, text, as_json=common.json)
