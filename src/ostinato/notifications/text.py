"""What people read, pure: deliveries and what is known of them become one message in plain English.

sender.py gathers the facts; a channel (channels.py) sends the message.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import quote

from ostinato.clock import from_micros
from ostinato.durations import span, took
from ostinato.models.ids import RunId
from ostinato.models.incident import Incident
from ostinato.models.notification import Delivery, NoticeKind
from ostinato.models.run import Run
from ostinato.models.schedule import Schedule
from ostinato.models.states import RunState
from ostinato.models.work import Http, ProcessWork, Shell, answer_text
from ostinato.models.work_kinds import line_of
from ostinato.notifications.severity import Severity, severity_of
from ostinato.plurals import counted, totals_text
from ostinato.timing.zones import shown_zone

__all__ = ["Facts", "Message", "compose", "last_lines"]

NAME, RESULT = 50, 500
"""How many characters of a name or a command, and of a result or a reason, are told."""
_LINES, _LINE = 8, 160
"""How many lines of output are told, and how much of each."""
_LISTED = 20
"""How many notices a message lists that stands for many."""
_CONTROLS = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f]")
_BAD, _GOOD, _ODD = "✗", "✓", "!"

_STATES = {
    RunState.SUCCEEDED: (_GOOD, "succeeded"),
    RunState.FAILED: (_BAD, "failed"),
    RunState.CANCELLED: (_ODD, "was cancelled"),
    RunState.SUPERSEDED: (_ODD, "was interrupted by a newer message"),
    RunState.SKIPPED: (_ODD, "was skipped"),
    RunState.EXPIRED: (_ODD, "waited too long and was not run"),
    RunState.MISSED: (_ODD, "was missed"),
}
_KINDS = {
    NoticeKind.FAILED: (_BAD, "failed"),
    NoticeKind.BROKEN: (_BAD, "was switched off"),
    NoticeKind.RECOVERED: (_GOOD, "recovered"),
    NoticeKind.MISSED: (_ODD, "was missed"),
    NoticeKind.LATE: (_ODD, "is late"),
    NoticeKind.SUCCEEDED: (_GOOD, "succeeded"),
    NoticeKind.RUN: (_ODD, "ended"),
}
_SHORT = {NoticeKind.BROKEN: "switched off", NoticeKind.RUN: "ended"}
"""How kinds are counted; the others by their names."""


@dataclass(frozen=True, slots=True)
class Message:
    """What a channel sends."""

    title: str
    """Nothing for an answer in a chat."""
    body: str
    key: str
    """The same whenever it is sent again. It stands at the end of the body too, but for an answer."""
    kind: NoticeKind
    """Of its first notice, if it tells many."""
    run: RunId | None = None
    schedule: str | None = None
    """What a person may want to do something about; of one notice, not of many."""
    severity: Severity = Severity.INFO
    """Of the worst that it tells."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of the one thing that a message is about, now that it is sent."""

    run: Run | None = None
    incident: Incident | None = None
    schedule: Schedule | None = None
    lines: Sequence[str] = ()
    """The last lines of the run's output."""
    zone: str = "UTC"
    """Of times, if there is no schedule."""
    public_url: str | None = None


def last_lines(lines: Sequence[str]) -> list[str]:
    """The end of an output, as much of it as a message tells."""
    return [_cut(line, _LINE) for line in map(_clean, lines) if line.strip()][-_LINES:]


def compose(deliveries: Sequence[Delivery], key: str, facts: Facts) -> Message:
    """The message of a parcel; the facts are of its delivery, if it has just one."""
    first, severity = deliveries[0], severity_of(deliveries)
    if len(deliveries) > 1:
        title, lines = _of_many(deliveries, facts)
        return Message(title, _body(lines, key), key, first.kind, severity=severity)
    match first.kind:
        case NoticeKind.ANSWER:
            return Message("", _answer(first, facts), key, first.kind, first.run, severity=severity)
        case NoticeKind.TEST:
            title = f"Test of the channel {first.channel}"
            lines = [f"If you can read this, the channel {first.channel} works."]
        case NoticeKind.DIGEST:
            title, lines = _digest(first, facts)
        case _:
            title, lines = _title(first, facts), [*_lines(first, facts), *_link(first, facts)]
    return Message(title, _body(lines, key), key, first.kind, first.run, first.schedule, severity)


def _body(lines: Sequence[str], key: str) -> str:
    return "\n".join([*lines, f"#{key}"])


def _title(delivery: Delivery, facts: Facts) -> str:
    mark, words = _KINDS[delivery.kind]
    count = int(delivery.data.get("count") or 1)
    if delivery.kind is NoticeKind.RUN and facts.run is not None:
        mark, words = _STATES.get(facts.run.state, (mark, words))
    if delivery.data.get("cause") == "errors" and delivery.kind is not NoticeKind.RECOVERED:
        mark, words = _ODD, "succeeded with errors"
    elif delivery.kind is NoticeKind.MISSED and count > 1:
        words = f"missed {count} due times"
    return f"{mark} {_cut(_subject(delivery, facts.run), NAME)} {words}"


def _subject(delivery: Delivery, run: Run | None) -> str:
    """What it is about: a command that has no other name is called by what it does."""
    if delivery.schedule is None and run is not None and isinstance(run.work, ProcessWork):
        return _clean(line_of(run.work))
    return delivery.subject


def _lines(delivery: Delivery, facts: Facts) -> Iterator[str]:
    """What is told of one notice, the most important first."""
    run, zone = facts.run, facts.zone if facts.schedule is None else facts.schedule.zone
    reason = delivery.data.get("reason")
    if delivery.kind is NoticeKind.RECOVERED:
        yield from _recovered(delivery, facts)
    elif reason:
        yield _cut(_clean(str(reason)), RESULT)
    if run is not None and run.totals and delivery.kind is not NoticeKind.RECOVERED:
        yield f"Totals: {_cut(totals_text(run.totals), RESULT)}"
    if run is not None and isinstance(run.work, ProcessWork):
        yield f"Command: {_cut(line_of(run.work), NAME)}"
    if run is not None and (lasted := took(run.started_at, run.finished_at)):
        yield f"Took {lasted}" + (f", attempt {run.attempt}" if run.attempt > 1 else "")
    yield from _often(delivery, facts, zone)
    yield from _next(facts, zone)
    if delivery.kind is not NoticeKind.RECOVERED:
        yield from _said(run, facts.lines)


def _said(run: Run | None, lines: Sequence[str]) -> Iterator[str]:
    """What the work says of itself: its result, or the end of its output where that says more."""
    result = "" if run is None or run.state is not RunState.SUCCEEDED else _result(run)
    if result:
        yield f"Result: {_cut(_clean(result), RESULT)}"
    elif lines:
        yield "Last output:"
        yield from (f"  {line}" for line in lines)


def _result(run: Run) -> str:
    """What a result says besides that it succeeded. That of a command is its exit status, and that of a request has its
    address, which may hold a secret."""
    match run.work, run.result:
        case (Shell(), _) | (_, True):
            return ""
        case _, dict() | list() as empty if not empty:
            return ""
        case Http(), {"status": status, "json": answer}:
            return f"HTTP {status}" + ("" if answer is None else f", {json.dumps(answer, ensure_ascii=False)}")
    return answer_text(run.work, run.result)


def _recovered(delivery: Delivery, facts: Facts) -> Iterator[str]:
    count = int(delivery.data.get("count") or 1)
    incident = facts.incident
    lasted = ""
    if incident is not None:
        until = incident.closed_at or delivery.at
        lasted = f"after {span((until - incident.opened_at).total_seconds())}, "
    yield f"It is well again, {lasted}{counted(count, 'failure')}."
    if reason := delivery.data.get("reason"):
        yield f"It was: {_cut(_clean(str(reason)), RESULT)}"


def _often(delivery: Delivery, facts: Facts, zone: str) -> Iterator[str]:
    """How many there were, if this was not the first."""
    incident = facts.incident
    if incident is None or delivery.kind is NoticeKind.RECOVERED:
        return
    if incident.count > 1:
        yield f"{counted(incident.count, 'time')} since {_time(min(incident.opened_at, _happened_at(delivery)), zone)}"
    if incident.reopened:
        yield f"It came back {counted(incident.reopened, 'time')}."


def _next(facts: Facts, zone: str) -> Iterator[str]:
    schedule = facts.schedule
    if schedule is None:
        return
    if schedule.next_run_at is not None:
        yield f"Next run: {_time(schedule.next_run_at, zone, exact=True)}"
    elif schedule.broken is not None:
        yield f"It is off until somebody enables it: ostinato schedule enable {_cut(schedule.name, NAME)}"


def _link(delivery: Delivery, facts: Facts) -> Iterator[str]:
    if facts.public_url is None:
        return
    if delivery.run is not None:
        yield f"{facts.public_url}/runs/{delivery.run}"
    elif delivery.schedule is not None:
        yield f"{facts.public_url}/schedules/{quote(delivery.schedule, safe='')}"


def _of_many(deliveries: Sequence[Delivery], facts: Facts) -> tuple[str, list[str]]:
    kinds = Counter(one.kind for one in deliveries)
    counts = ", ".join(f"{kinds[kind]} {_SHORT.get(kind, kind)}" for kind in NoticeKind if kind in kinds)
    listed = deliveries[:_LISTED]
    times = [_happened_at(one).astimezone(shown_zone(facts.zone)) for one in listed]
    form = "%H:%M" if len({time.date() for time in times}) == 1 else "%Y-%m-%d %H:%M"
    lines = []
    for one, time in zip(listed, times, strict=True):
        reason = one.data.get("reason")
        said = "" if not reason or one.kind is NoticeKind.RECOVERED else f": {_cut(_clean(str(reason)), _LINE)}"
        lines.append(f"{time:{form}} {_title(one, Facts())}{said}")
    if len(deliveries) > _LISTED:
        lines.append(f"and {len(deliveries) - _LISTED} more")
    lines.append(f"Times in {facts.zone}")
    if facts.public_url is not None:
        lines.append(f"{facts.public_url}/runs")
    return f"{len(deliveries)} notices: {counts}", lines


def _happened_at(delivery: Delivery) -> datetime:
    """What was missed was noticed later than it was due."""
    due_at = delivery.data.get("due_at")
    return delivery.at if due_at is None or delivery.kind is not NoticeKind.MISSED else from_micros(int(due_at))


def _digest(delivery: Delivery, facts: Facts) -> tuple[str, list[str]]:
    data: Any = delivery.data
    zone = str(data.get("zone") or facts.zone)
    states: dict[str, int] = dict(data.get("states") or {})
    total = counted(sum(states.values()), "run")
    failed = states.get("failed", 0)
    title = f"Summary of {_cut(delivery.subject, NAME)}: {total}" + (f", {failed} failed" if failed else "")
    ended = ", ".join(f"{states[state]} {state}" for state in RunState if states.get(state))
    since, until = _time(from_micros(int(data.get("since") or 0)), zone), _time(delivery.at, zone)
    lines = [f"From {since} to {until}: {ended or 'nothing ran'}"]
    if wrong := data.get("failed"):
        lines.append("Failed: " + ", ".join(f"{_cut(str(name), NAME)} ({count})" for name, count in wrong))
    if data.get("open"):
        lines.append(counted(int(data["open"]), "open incident"))
    if facts.public_url is not None:
        lines.append(facts.public_url)
    return title, lines


def _answer(delivery: Delivery, facts: Facts) -> str:
    """What the run has to say, whole: a chat shows it in parts."""
    run = facts.run
    if run is None:
        return str(delivery.data.get("reason") or "That is not known any more.")
    said = answer_text(run.work, run.result)
    if run.state is RunState.SUCCEEDED:
        return said or "Done."
    words = _STATES.get(run.state, (_ODD, "ended"))[1]
    reason = run.reason or run.error
    return f"It {words}" + (f": {_cut(_clean(reason), RESULT)}" if reason else ".")


def _time(moment: datetime, zone: str, *, exact: bool = False) -> str:
    """On the wall of the zone; with seconds only if it must be `exact`, and is not on the minute."""
    seconds = ":%S" if exact and moment.second else ""
    return f"{moment.astimezone(shown_zone(zone)):%Y-%m-%d %H:%M{seconds} %Z}"


def _clean(text: str) -> str:
    """Without what would move a terminal's cursor or break a message."""
    return _CONTROLS.sub("", text)


def _cut(text: str, most: int) -> str:
    text = " ".join(text.split()) if most <= _LINE else text.strip()
    return text if len(text) <= most else text[: most - 1] + "…"
