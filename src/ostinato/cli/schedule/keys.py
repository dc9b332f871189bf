"""`ostinato schedule ping-key` and `badge`: addresses of a schedule that need no login, each with a secret key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ostinato.cli.console import emit, emit_json, plain, say
from ostinato.cli.open_database import OpenDatabase, opened
from ostinato.cli.options import NO_COMMON, Common, ScheduleName

if TYPE_CHECKING:
    from ostinato.service.schedules.keys import ScheduleKey

__all__ = ["badge", "ping_key"]


def ping_key(name: ScheduleName, /, *, new: bool = False, common: Common = NO_COMMON) -> None:
    """Print the address at which the machine of a check-in tells of its work. It is shown only once.

    Parameters
    ----------
    new
        Another one, in the place of the one that it has: that one ends.
    """
    with opened(common) as database:
        made = database.ask(database.services.schedules.ping_key(name, new=new))
        _show(database, made, as_json=common.json)
    if not common.json:
        say("it is shown only this once; in a crontab: … ; curl -fsS -m 10 --retry 3 ADDRESS/$?")


def badge(name: ScheduleName, /, *, new: bool = False, common: Common = NO_COMMON) -> None:
    """Print the address of a picture of a schedule's state, for a README or a wiki. It is shown only once.

    Parameters
    ----------
    new
        Another one, in the place of the one that it has: that one ends.
    """
    with opened(common) as database:
        made = database.ask(database.services.schedules.badge_key(name, new=new))
        _show(database, made, as_json=common.json)
    if not common.json:
        say("it is shown only this once; whoever has it sees the name and the state of the schedule, and nothing else")


def _show(database: OpenDatabase, made: ScheduleKey, *, as_json: bool) -> None:
    from ostinato.cli.server import address_text

    settings = database.app.settings
    url = address_text(settings, settings.port) + made.path
    if as_json:
        emit_json({**plain(made), "url": url})
    else:
        emit(url)
