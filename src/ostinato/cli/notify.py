"""`ostinato notify`: channels, by which people are told, and what became of each message. Rules are in
`notify_rule.py`."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from ostinato.cli.console import Cell, Column, Styled, emit_json, fields, read_stdin, say, table, tell, warn
from ostinato.cli.notify_rule import app as rule_app
from ostinato.cli.notify_rule import rule_line
from ostinato.cli.open_database import opened
from ostinato.cli.options import NO_COMMON, ChannelName, Common, Limit
from ostinato.cli.times import brief, full, span
from ostinato.command_hints import hint
from ostinato.plurals import counted

if TYPE_CHECKING:
    from ostinato.models.notification import Delivery, Wait
    from ostinato.service.notifications import ChannelStatus

__all__ = ["app", "delivery_cell", "delivery_line"]

app = App(
    name="notify",
    help="Channels that people are told by: add, list, test and remove them and their rules, and see what was sent.",
)
app.command(rule_app)

_STYLES = {"sent": "green", "failed": "red", "pending": "yellow", "sending": "cyan"}


@app.command
def add(
    name: str,
    url: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
    /,
    *,
    quiet: str | None = None,
    digest: str | None = None,
    cool_down: str | None = None,
    tz: str | None = None,
    note: str | None = None,
    common: Common = NO_COMMON,
) -> None:
    """Add a channel, or change what is given of the one of this name. Doing it twice changes nothing.

    Parameters
    ----------
    name
        What schedules and rules call it, such as phone.
    url
        Where messages go, as apprise writes it: mailto://…, tgram://…, ntfy://…, json://…; telegram://CHAT for a chat
        of our bot. It is a secret: '-' reads it from standard input, and env:NAME or file:PATH say where it is. Left
        out, an existing channel keeps its own.
    quiet
        Hours in which nothing is sent, such as 22:00-07:00; 'none' for no such hours.
    digest
        Send everything as one message at these times, such as 'daily 08:00'; 'none' to send at once.
    cool_down
        How long it hears nothing more of trouble that ends and comes back. [default: 15m]
    tz
        The zone of these hours and times. [default: that of the settings]
    note
        What it is; 'none' removes it.
    """
    given = read_stdin("url") if url == "-" else url
    options = {"quiet": quiet, "digest": digest, "cool_down": cool_down, "tz": tz, "note": note}
    with opened(common, create=True) as database:
        channel, did = database.ask(database.services.notifications.put(name, given, **options))
        problem = database.ask(database.services.notifications.examine(name))[name]
    if problem is not None:
        # Not refused: the machine that sends may have what this one lacks.
        warn(f"from this machine, nothing could be sent there: {problem}")
    done = f"{did}: channel {name!r}, {channel.url}"
    tell(channel, f"{done}; {hint('notify test', name)} sends a test", as_json=common.json)


@app.command
def ls(*, common: Common = NO_COMMON) -> None:
    """List channels: when each was last used, whether it works, and what waits for it."""
    with opened(common) as database:
        channels = database.ask(database.services.notifications.list())
        if common.json:
            emit_json(channels)
            return
        zone, now = database.zone, database.now
    titles = [
        Column("NAME", flexible=True),
        Column("URL", flexible=True),
        Column("LAST SENT"),
        Column("STATE", flexible=True),
    ]
    columns = [*titles, Column("NOTE", optional=True)]
    none = "no channels: add one with 'ostinato notify add NAME URL'"
    table(columns, [_row(channel, zone, now) for channel in channels], otherwise=none)


def _row(channel: ChannelStatus, zone: str, now: datetime) -> list[Cell]:
    sent = "never" if channel.sent_at is None else f"{span((now - channel.sent_at).total_seconds())} ago"
    return [channel.name, channel.url, sent, _state(channel, zone, now), channel.note or ""]


def _state(channel: ChannelStatus, zone: str, now: datetime) -> Cell:
    waits = "" if channel.waits is None else f": {_wait_text(channel.waits, zone, now)}"
    waiting = f"{counted(channel.waiting, 'waits', 'wait')}{waits}" if channel.waiting else ""
    if channel.failures:
        failed = f"{counted(channel.failures, 'failure')}: {channel.error}"
        return Styled(f"{waiting}; {failed}" if waiting else failed, "red")
    if waiting:
        return Styled(waiting, "yellow")
    return Styled("ok", "green") if channel.sent_at is not None else "unused"


@app.command
def show(name: ChannelName, /, *, common: Common = NO_COMMON) -> None:
    """Show a channel and its rules."""
    with opened(common) as database:
        channel = database.ask(database.services.notifications.get(name))
        if common.json:
            emit_json(channel)
            return
        rules = database.ask(database.services.notifications.rules(name))
        zone = database.zone
        fields(
            [
                ("name", channel.name),
                ("url", channel.url),
                ("note", channel.note),
                ("state", _state(channel, zone, database.now)),
                ("sent", None if channel.sent_at is None else full(channel.sent_at, zone)),
                ("tried again", None if channel.retry_at is None else full(channel.retry_at, zone)),
                ("quiet", None if channel.quiet is None else f"{channel.quiet} ({channel.zone})"),
                ("digest", None if channel.digest is None else f"{channel.digest} ({channel.zone})"),
                ("cool-down", channel.cool_down),
                ("rules", "\n".join(map(rule_line, rules)) or "none"),
                ("created", full(channel.created_at, zone)),
            ]
        )


@app.command(name="test")
def send_test(name: ChannelName, /, *, common: Common = NO_COMMON) -> int:
    """Send a test message, and say what became of it. Exit code 1 if it was not sent."""
    with opened(common) as database:
        delivery = database.ask(database.services.notifications.test(name))
    tell(delivery, f"{delivery_line(delivery)}: test message to channel {name!r}, #{delivery.key}", as_json=common.json)
    return 0 if delivery.state == "sent" else 1


@app.command
def rm(name: ChannelName, /, *, force: bool = False, common: Common = NO_COMMON) -> None:
    """Remove a channel with its rules; what was still to be sent there is dropped. Refused while schedules name it.

    Parameters
    ----------
    force
        Remove it though schedules name it: they tell it nothing more.
    """
    with opened(common) as database:
        removed = database.ask(database.services.notifications.remove(name, force=force))
    text = f"removed: channel {name!r}" + (f", with {counted(removed.rules, 'rule')}" if removed.rules else "")
    still = f"; still named by {', '.join(removed.schedules)}" if removed.schedules else ""
    answer = {"name": name, "removed": True, "rules": removed.rules, "schedules": removed.schedules}
    tell(answer, text + still, as_json=common.json)


@app.command
def log(
    name: str | None = None,
    /,
    *,
    state: str | None = None,
    limit: Limit = 20,
    common: Common = NO_COMMON,
) -> None:
    """List messages and what became of them, the newest first.

    Parameters
    ----------
    name
        Only those for this channel.
    state
        Only those in this state: pending, sending, sent, failed or dropped.
    """
    with opened(common) as database:
        found = database.ask(database.services.notifications.log(name, state=state, limit=limit))
        if common.json:
            emit_json(found)
            return
        zone, now = database.zone, database.now
    columns = [Column(title) for title in ("ID", "AT", "CHANNEL", "KIND")]
    columns += [Column("SUBJECT", flexible=True), Column("STATE"), Column("TRY"), Column("WHY", flexible=True)]
    rows = [[str(one.id), brief(one.at, zone, now), *_message_row(one, zone, now)] for one in found]
    table(columns, rows, otherwise="no messages: nothing was sent, and nothing waits")
    say(f"{counted(len(found), 'message')}, times in {zone}", "dim")


def _message_row(one: Delivery, zone: str, now: datetime) -> list[Cell]:
    waits = None if one.waits is None else _wait_text(one.waits, zone, now)
    why = "; ".join(filter(None, [waits, one.error]))
    return [one.channel, str(one.kind), one.subject, delivery_cell(one), str(one.attempts), why]


def _wait_text(wait: Wait, zone: str, now: datetime) -> str:
    """`until 07:00:00, quiet hours`; what is cut on a narrow terminal is its end."""
    return wait.text if wait.until is None else f"until {brief(wait.until, zone, now)}, {wait.text}"


def delivery_cell(delivery: Delivery) -> Styled:
    """Its state in its colour."""
    return Styled(str(delivery.state), _STYLES.get(delivery.state, ""))


def delivery_line(delivery: Delivery) -> str:
    """What became of it, and why."""
    why = delivery.error or (delivery.waits and delivery.waits.text)
    return f"{delivery.state}" + (f" ({why})" if why else "")
