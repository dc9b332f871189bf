"""`ostinato timing`: what a text means, when it is due, and what the clock changes do to it. Needs no database."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated
from zoneinfo import ZoneInfo

from cyclopts import Parameter

from ostinato.cli.console import Column, emit, emit_json, paragraph, table
from ostinato.cli.times import full, read_time
from ostinato.errors import InvalidInput

if TYPE_CHECKING:
    from ostinato.timing import Timing

__all__ = ["timing"]

_MOST = 10_000


def timing(
    text: str,
    /,
    *,
    tz: str | None = None,
    count: Annotated[int, Parameter(name=["-n", "--count"], show_default=True)] = 5,
    after: str | None = None,
    json: bool = False,
) -> None:
    """Explain a timing: a sentence, its next times, and what the clock changes do to them.

    Parameters
    ----------
    text
        "every 5m", "daily 03:00", "weekly mon,thu 09:00", "30 9 * * 1-5", "weekdays 09:30 except 12-25", …
    tz
        The zone of its wall clock, such as Europe/Berlin. [default: that of the settings]
    count
        How many times to show.
    after
        Show the times after this one instead of after now.
    json
        Print JSON.
    """
    from ostinato.clock import SystemClock, from_micros
    from ostinato.config import load_settings
    from ostinato.service.shapes import rfc3339
    from ostinato.timing import parse_timing
    from ostinato.timing.zones import check_zone

    if not 1 <= count <= _MOST:
        raise InvalidInput(f"-n cannot be {count}", field="n", hint=f"give 1 to {_MOST}")
    local = load_settings().tz
    zone = local if tz is None else check_zone(tz)
    now = from_micros(SystemClock().now()).replace(microsecond=0)
    start = now if after is None else read_time(after, zone, field="after")
    found = parse_timing(text, tz=zone, now=start)
    times = _next_times(found, start, count)
    remarks = found.remarks(start, count)
    if json:
        shape = {"text": found.text, "zone": found.zone or zone, "sentence": found.explain()}
        emit_json({**shape, "next": [rfc3339(due) for due in times], "remarks": remarks})
        return
    paragraph("", found.explain())
    emit()
    if times:
        _print_times(times, found.zone or zone, local)
    else:
        emit(f"It has no due time after {full(start, zone)}.")
    for remark in remarks:
        emit()
        paragraph("", remark)


def _next_times(found: Timing, start: datetime, count: int) -> list[datetime]:
    anchored = found.anchored(start)
    times: list[datetime] = []
    due = anchored.next_after(start)
    while due is not None and len(times) < count:
        times.append(due)
        due = anchored.next_after(due)
    return times


def _print_times(times: list[datetime], zone: str, local: str) -> None:
    rows = [
        [full(due, zone), f"{due.astimezone(ZoneInfo(local)):%Y-%m-%d %H:%M:%S}", f"{due:%Y-%m-%d %H:%M:%S}"]
        for due in times
    ]
    table([Column(zone, flexible=True), Column(f"local ({local})", flexible=True), Column("UTC")], rows)
