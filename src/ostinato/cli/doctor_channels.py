"""What `ostinato doctor` finds in channels: those that cannot be used, that fail, or that are named and not there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ostinato.cli.finding import Finding, named
from ostinato.command_hints import hint
from ostinato.plurals import counted

if TYPE_CHECKING:
    from ostinato.cli.open_database import OpenDatabase
    from ostinato.models.schedule import Schedule

__all__ = ["examine_channels"]


def examine_channels(database: OpenDatabase, schedules: Sequence[Schedule], *, send: bool) -> Iterator[Finding]:
    """Everything that messages need; they are sent only if that is asked for."""
    channels = database.ask(database.services.notifications.list())
    problems = database.ask(database.services.notifications.examine())
    bad = list(_unknown(schedules, {channel.name for channel in channels}))
    for channel in channels:
        if (problem := problems.get(channel.name)) is not None:
            fix = f"correct it with {hint('notify add', channel.name, 'URL')}, or send from another machine"
            bad.append(Finding("channels", "warn", f"{channel.name!r} cannot be used from here: {problem}", fix))
        elif channel.failures:
            text = f"{channel.name!r} failed {counted(channel.failures, 'time')} in a row: {channel.error}"
            bad.append(Finding("channels", "warn", text, f"try it with {hint('notify test', channel.name)}"))
    yield from bad
    if channels and not bad:
        yield Finding("channels", "ok", f"{len(channels)}, none fails: {named([channel.name for channel in channels])}")
    if send:
        for channel in channels:
            yield _sent(database, channel.name)


def _unknown(schedules: Sequence[Schedule], known: set[str]) -> Iterator[Finding]:
    """Channels that schedules name: they may have been declared in code, or removed by force."""
    users: dict[str, list[str]] = {}
    for schedule in schedules:
        for entry in schedule.policy.notify:
            if (name := entry.partition("=")[0]) not in known:
                users.setdefault(name, []).append(schedule.name)
    for name, naming in sorted(users.items()):
        fix = f"add it with {hint('notify add', name, 'URL')}, or change notify of the schedules"
        yield Finding("channels", "warn", f"there is no {name!r}, which {named(naming)} would tell", fix)


def _sent(database: OpenDatabase, name: str) -> Finding:
    delivery = database.ask(database.services.notifications.test(name))
    if delivery.state == "sent":
        return Finding("channels", "ok", f"a test was sent to {name!r}")
    why = f": {delivery.error}" if delivery.error else ""
    text = f"the test for {name!r} is {delivery.state}{why}"
    return Finding("channels", "fail", text, f"see {hint('notify log', name)}")
