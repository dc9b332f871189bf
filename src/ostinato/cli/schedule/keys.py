"""`ostinato schedule ping-key` and `badge`: addresses of a schedule that need no login, each with a secret key."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from ostinato.cli.console import emit, emit_json, plain, say
from ostinato.cli.open_database import opened
from ostinato.cli.options import NO_COMMON, Common, ScheduleName

if TYPE_CHECKING:
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
    _print_key(common, lambda schedules: schedules.ping_key(name, new=new), said)


def badge(name: ScheduleName, /, *, new: bool = False, common: Common = NO_COMMON) -> None:
    """Print the address of a picture of a schedule's state, for a README or a wiki. It is shown only once.

    Parameters
    ----------
    new
        Another one, in the place of the one that it has: that one ends.
    """
    said = "it is shown only this once; whoever has it sees the name and the state of the schedule, and nothing else"
    _print_key(common, lambda schedules: schedules.badge_key(name, new=new), said)


def _print_key(common: Common, make: Callable[[ScheduleService], Coroutine[Any, Any, ScheduleKey]], said: str) -> None:
    from ostinato.cli.server import address_text

    with opened(common) as database:
        made = database.ask(make(database.services.schedules))
        settings = database.app.settings
    url = address_text(settings, settings.port) + made.path
    if common.json:
        emit_json({**plain(made), "url": url})
        return
    emit(url)
    say(said)
