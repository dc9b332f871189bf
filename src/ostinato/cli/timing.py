"""`ostinato timing`: what a text means, when it is due, and what the clock changes do to it. Only a calendar needs a
database."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated
from zoneinfo import ZoneInfo

from cyclopts import Parameter

from ostinato.cli.console import Column, emit, emit_json, paragraph, table
from ostinato.cli.open_database import opened
from ostinato.cli.options import NO_COMMON, Common
from ostinato.cli.times import full, read_time

__all__ = ["timing"]


def timing(
    text: str,
    /,
    *,
    tz: str | None = None,
    name: str | None = None,
    count: Annotated[int, Parameter(name=["-n", "--count"], show_default=True)] = 5,
    after: str | None = None,
    common: Common = NO_COMMON,
) -> None:
    """Explain a timing: a sentence, its next due times, and how clock changes affect them.

    Parameters
    ----------
    text
        "every 5m", "daily 03:00, 15:00", "weekly mon,thu 09:00", "30 9 * * 1-5", "weekdays 9-17 every 30m",
        "monthly last workday 17:00", "every 2 weeks on monday 9:00", "weekdays 09:30 except 12-25",
        "daily 09:00 from 2027-01-01 until 10 runs", …
    tz
        The zone of its wall clock, such as Europe/Berlin. [default: the zone of the settings]
    name
        The name of the schedule, which chooses what an H of cron stands for.
    count
        How many times to show.
    after
        Show the due times after this time instead of after now.
    """
    from ostinato.clock import SystemClock
    from ostinato.config import load_settings
    from ostinato.service.answers import Preview
    from ostinato.service.timings import TimingService
    from ostinato.timing.zones import check_zone

    local = load_settings().tz
    zone = local if tz is None else check_zone(tz)
    start = None if after is None else read_time(after, zone, field="after")
    if "calendar" in text.casefold():
        # Its dates are where the schedules are.
        with opened(common) as database:
            timings = database.services.timings
            found = database.ask(timings.preview_aside(text, zone=zone, name=name, n=count, after=start))
    else:
        found = TimingService(SystemClock(), local).preview(text, zone=zone, name=name, n=count, after=start)
    if common.json:
        emit_json(Preview.of(found))
        return
    paragraph("", found.sentence)
    emit()
    if found.next:
        _print_times(found.next, found.zone, local)
    else:
        emit(f"It has no due time after {full(found.after, zone)}.")
    for remark in found.remarks:
        emit()
        paragraph("", remark)


def _print_times(times: Sequence[datetime], zone: str, local: str) -> None:
    rows = [
        [full(due, zone), f"{due.astimezone(ZoneInfo(local)):%Y-%m-%d %H:%M:%S}", f"{due:%Y-%m-%d %H:%M:%S}"]
        for due in times
    ]
    table([Column(zone, flexible=True), Column(f"local ({local})", flexible=True), Column("UTC")], rows)
