"""`ostinato schedule ping-key` and `badge`: addresses of a schedule that need no login, each with a secret key."""

from __future__ import annotations

import socket
from collections.abc import Callable, Coroutine, Iterable
from typing import TYPE_CHECKING, Any

from ostinato.cli.console import emit, emit_json, plain, say
from ostinato.cli.open_database import opened
from ostinato.cli.options import NO_COMMON, Common, ScheduleName
from ostinato.errors import InvalidInput

if TYPE_CHECKING:
    from ostinato.models.node import Node
    from ostinato.service.schedules.keys import ScheduleKey
    from ostinato.service.schedules.service import ScheduleService

__all__ = ["badge", "ping_key"]


def ping_key(name: ScheduleName, /, *, new: bool = False, common: Common = NO_COMMON) -> None:
    """Print the address at which the machine of a check-in tells of its work. It is shown only once.

    Parameters
    ----------
    new
        Another one, in the place of the one that it has: that one ends.
    """
    said = "it is shown only this once; in a crontab: … ; curl -fsS -m 10 --retry 3 ADDRESS/$?"
    _print_key(common, name, lambda schedules, name: schedules.ping_key(name, new=new), said)


def badge(name: ScheduleName, /, *, new: bool = False, common: Common = NO_COMMON) -> None:
    """Print the address of a picture of a schedule's state, for a README or a wiki. It is shown only once.

    Parameters
    ----------
    new
        Another one, in the place of the one that it has: that one ends.
    """
    said = "it is shown only this once; whoever has it sees the name and the state of the schedule, and nothing else"
    _print_key(common, name, lambda schedules, name: schedules.badge_key(name, new=new), said)


def _print_key(
    common: Common, ref: str, make: Callable[[ScheduleService, str], Coroutine[Any, Any, ScheduleKey]], said: str
) -> None:
    from ostinato.cli.server import address_text

    with opened(common) as database:
        settings = database.app.settings
        known = settings.public_url or _served_at(database.ask(database.services.nodes.list()))
        if known is None and settings.port == 0:
            hint = "start the server first, or set public_url or the port that it will have"
            raise InvalidInput("no running server is known, and port 0 means any free port", field="port", hint=hint)
        made = database.ask(make(database.services.schedules, database.schedule_name(ref)))
    url = (known or address_text(settings, settings.port)) + made.path
    if common.json:
        emit_json({**plain(made), "url": url})
        return
    emit(url)
    say(said)
    if known is None:
        say(f"no running server is known: this is the address that the settings say; elsewhere, append {made.path}")


def _served_at(nodes: Iterable[Node]) -> str | None:
    """Where a node serves the page, one of this machine rather than another one; None if none is known to."""
    serving = [node for node in nodes if node.state != "lost" and "page" in node.services]
    here = socket.gethostname()
    serving.sort(key=lambda node: node.host != here)
    return str(serving[0].services["page"]["status"]) if serving else None
