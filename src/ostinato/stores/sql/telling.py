"""What is told of what was recorded: notices become incidents and deliveries, inside the transaction that records.

finishes.py, ends.py and each store's `record_fires` call it. Of one subject and cause there is one open incident, told
when it opens; a success closes it. Subjects are gone through in one order, so that two nodes wait and do not deadlock.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, NamedTuple

import msgspec

from ostinato.clock import Micros
from ostinato.errors import InvalidInput
from ostinato.models.delivery_wait import AGAIN
from ostinato.models.ids import IncidentId
from ostinato.models.incident import CHANGES_EVERY, FAILINGS, LATE, REOPENS_WITHIN, SWITCHED_OFF, IncidentChange, Notice
from ostinato.models.notification import COOL_DOWN, NoticeKind, parse_subscription
from ostinato.stores.runs import NOTHING_TOLD, Told
from ostinato.stores.sql.connection import Connection, Values
from ostinato.stores.sql.deliveries import RECOVERED_UNSENT, new_key
from ostinato.stores.sql.incidents import CHANGE_COLUMNS, load_change

__all__ = ["tell"]

# What ended earlier may be written later: the runs of an incident are found by its time.
_MORE = """
count = count + :count, opened_at = CASE WHEN opened_at < :first_at THEN opened_at ELSE :first_at END,
last_at = CASE WHEN last_at > :at THEN last_at ELSE :at END, reason = :reason,
last_run = coalesce(:run::bigint, last_run)
"""
# Once in a while: it is in an index. A look of the live stream goes back further than that, and sees the count.
_COUNT_ON = f"""
UPDATE incidents SET {_MORE}, changed_at = CASE WHEN changed_at > :lately THEN changed_at ELSE :now END
WHERE subject = :subject AND cause = :cause AND closed_at IS NULL RETURNING {CHANGE_COLUMNS}
"""
_REOPEN = f"""
UPDATE incidents SET {_MORE}, changed_at = :now,
                     turned_at = :now, closed_at = NULL, closed_reason = NULL, reopened = reopened + 1, acked_at = NULL,
                     acked_by = NULL
WHERE id = (SELECT max(id) FROM incidents WHERE subject = :subject AND cause = :cause AND closed_at > :since)
  AND closed_at IS NOT NULL
RETURNING {CHANGE_COLUMNS}
"""
# Whoever comes second to the same one counts on it.
_OPEN = f"""
INSERT INTO incidents (subject, cause, kind, opened_at, last_at, changed_at, turned_at, count, reason, first_run,
                       last_run, schedule, project)
VALUES (:subject, :cause, :kind, :first_at, :at, :now, :now, :count, :reason, :first_run, :run, :schedule, :project)
ON CONFLICT (subject, cause) WHERE closed_at IS NULL
DO UPDATE SET count = incidents.count + excluded.count, last_at = excluded.last_at, changed_at = excluded.changed_at,
              reason = excluded.reason, last_run = coalesce(excluded.last_run, incidents.last_run)
RETURNING {CHANGE_COLUMNS}
"""
# A schedule that is still off has not recovered, whatever somebody ran of it by hand.
_CLOSE = f"""
UPDATE incidents SET closed_at = :at, changed_at = :now, turned_at = :now, closed_reason = 'it succeeded'
WHERE subject = :subject AND closed_at IS NULL
  AND (cause <> '{SWITCHED_OFF}' OR NOT EXISTS (SELECT 1 FROM schedules WHERE name = :subject AND broken IS NOT NULL))
RETURNING {CHANGE_COLUMNS}
"""
# Whom no message reached was not told.
_TOLD = """
SELECT channel, kind, state, data, id, attempts, ready_at FROM deliveries
WHERE incident_id = :id AND state NOT IN ('dropped', 'failed') ORDER BY id
"""
# What is still to be sent tells its channel now, or later.
_LAST_TOLD = """
SELECT d.channel, max(CASE WHEN d.state = 'sent' THEN d.sent_at WHEN d.ready_at > :now THEN d.ready_at ELSE :now END)
FROM incidents i JOIN deliveries d ON d.incident_id = i.id
WHERE i.subject = :subject AND i.cause = :cause AND i.closed_at IS NOT NULL AND d.state NOT IN ('dropped', 'failed')
GROUP BY d.channel
"""
_DROP = "UPDATE deliveries SET state = 'dropped', error = :error WHERE id = ANY (:ids::bigint[]) AND state = 'pending'"
_CHANNELS = "SELECT name, cool_down FROM channels"
_RULES = "SELECT channel, kinds, project FROM rules"
_OWE = """
INSERT INTO deliveries (key, at, channel, kind, subject, ready_at, incident_id, run_id, schedule, data)
SELECT d.key, :now::bigint, d.channel, d.kind, d.subject, d.ready_at, d.incident_id, d.run_id, d.schedule, d.data
FROM unnest(:keys::text[], :channels::text[], :kinds::text[], :subjects::text[], :ready::bigint[], :incidents::bigint[],
            :runs::bigint[], :schedules::text[], :data::text[])
     d (key, channel, kind, subject, ready_at, incident_id, run_id, schedule, data)
"""
_RECOVERED_BEFORE = "it had recovered before it was told again"
_FIRST = (NoticeKind.ANSWER, NoticeKind.BROKEN, NoticeKind.LATE, NoticeKind.FAILED, NoticeKind.RECOVERED)
"""Of several kinds about one run, a channel gets the first of these, or whatever there is."""


_About = tuple[str, tuple[str, object]]
"""A channel, and the run or the incident that it is told of."""


class _Owed(NamedTuple):
    """A delivery to be written."""

    channel: str
    kind: NoticeKind
    notice: Notice
    incident: IncidentId | None
    ready_at: Micros
    again: bool


async def tell(db: Connection, notices: Sequence[Notice], now: Micros) -> Told:
    """Open, count on and close incidents, and owe channels what they are to be told."""
    if not notices:
        return NOTHING_TOLD
    telling = _Telling(db, now)
    in_order = sorted(notices, key=lambda notice: notice.subject)
    for subject, told in groupby(in_order, key=lambda notice: notice.subject):
        await telling.go_through(subject, list(told))
    owed = await telling.owe()
    return Told(tuple(telling.changes), owed) if owed or telling.changes else NOTHING_TOLD


class _Telling:
    """One call of `tell`. Rules and channels are read once, and only if they are asked for."""

    def __init__(self, db: Connection, now: Micros) -> None:
        self._db = db
        self._now = now
        self._channels: dict[str, Micros] | None = None
        self._rules: list[tuple[str, frozenset[str], str | None]] = []
        self._owed: dict[_About, _Owed] = {}
        self._of_incident: dict[IncidentId, list[_About]] = {}
        self.changes: list[IncidentChange] = []

    async def go_through(self, subject: str, notices: Sequence[Notice]) -> None:
        """What happened to one subject, in its order; failures of one cause are counted together."""
        failures: dict[str, Notice] = {}
        is_open = True
        """Whether something may be open: successes one after the other close what there is once."""
        for notice in notices:
            if notice.kind in FAILINGS and notice.cause is not None:
                before = failures.pop(notice.cause, None)
                failures[notice.cause] = notice if before is None else _joined(before, notice)
                await self._to_each_run(notice)
                continue
            if notice.closes and (is_open or failures):
                await self._fail(failures)
                failures, is_open = {}, False
                await self._close(subject, notice)
            await self._to_each_run(notice)
        await self._fail(failures)

    async def _fail(self, failures: dict[str, Notice]) -> None:
        for cause in sorted(failures):
            await self._open(failures[cause])

    async def _open(self, notice: Notice) -> None:
        values: Values = {
            "subject": notice.subject,
            "cause": notice.cause,
            "kind": notice.kind,
            "at": notice.at,
            "first_at": notice.at if notice.since is None else notice.since,
            "first_run": notice.run if notice.first_run is None else notice.first_run,
            "now": self._now,
            "lately": self._now - CHANGES_EVERY,
            "since": notice.at - REOPENS_WITHIN,
            "count": notice.count,
            "reason": notice.reason,
            "run": notice.run,
            "schedule": notice.schedule,
            "project": notice.project,
        }
        if await self._db.fetch(_COUNT_ON, values):
            return
        wanting = await self._wanting(notice)
        told: list[Any] = await self._db.fetch(_LAST_TOLD, {**values, "now": self._now}) if wanting else []
        reopened = await self._db.fetch(_REOPEN, values)
        rows = reopened or await self._db.fetch(_OPEN, values)
        change = load_change(rows[0], True, notice.at)
        if not reopened and change.count != notice.count:
            return  # somebody else opened it meanwhile
        self.changes.append(change)
        cool_downs, last_told = await self._known(), dict(told)
        last_told |= {owed.channel: owed.ready_at for _, owed in self._told_of(change.id)}
        for channel in wanting:
            # A channel may be told of this subject and cause again once its cool-down is over.
            at = last_told.get(channel)
            ready_at = self._now if at is None else max(self._now, at + cool_downs.get(channel, COOL_DOWN))
            self._add(_Owed(channel, notice.kind, notice, change.id, ready_at, again=ready_at > self._now))

    async def _close(self, subject: str, notice: Notice) -> None:
        """It succeeded: end what is open, and tell those who were told."""
        rows = await self._db.fetch(_CLOSE, {"subject": subject, "at": notice.at, "now": self._now})
        if not rows:
            return
        closed = sorted((load_change(row, False, notice.at) for row in rows), key=lambda change: change.id)
        self.changes += closed
        wanting = await self._wanting(replace(notice, kind=NoticeKind.RECOVERED))
        told_of: dict[str, list[tuple[IncidentChange, Micros]]] = {}
        for change in closed:
            for channel, ready_at in (await self._told(change.id, wanting)).items():
                if channel in wanting:
                    told_of.setdefault(channel, []).append((change, ready_at))
        for channel, told in told_of.items():
            recovered = _recovered(notice, [change for change, _ in told])
            ready_at = max(ready_at for _, ready_at in told)
            self._add(_Owed(channel, NoticeKind.RECOVERED, recovered, told[0][0].id, ready_at, again=False))

    async def _told(self, id: IncidentId, wanting: Sequence[str]) -> dict[str, Micros]:
        """Who was told last that it fails, or wanted to be, and from when on they may be told that it is over. What has
        become stale is dropped."""
        again: list[int] = []
        tried: list[int] = []
        told: dict[str, Micros] = {}
        for channel, kind, state, data, delivery, attempts, ready_at in await self._db.fetch(_TOLD, {"id": id}):
            if state == "pending" and AGAIN in msgspec.json.decode(data):
                again.append(delivery)
                told.pop(channel, None)
            elif kind == NoticeKind.RECOVERED:
                told.pop(channel, None)
            else:
                # What was not tried yet goes before its recovery; what was would come behind it.
                is_before = state == "pending" and not attempts
                told[channel] = max(self._now, ready_at) if is_before else self._now
                if state == "pending" and attempts and channel in wanting:
                    tried.append(delivery)
        for about, owed in self._told_of(id):
            if owed.again:
                del self._owed[about]
            if owed.again or owed.kind is NoticeKind.RECOVERED:
                told.pop(owed.channel, None)
            else:
                told[owed.channel] = owed.ready_at
        for ids, why in ((again, _RECOVERED_BEFORE), (tried, RECOVERED_UNSENT)):
            if ids:
                await self._db.run(_DROP, {"ids": ids, "error": why})
        return told

    async def _to_each_run(self, notice: Notice) -> None:
        """Those who want to hear of every success, of every run, or wait for the answer of this one."""
        if notice.run is None:
            return
        wanted = {NoticeKind.RUN}
        if notice.kind is NoticeKind.SUCCEEDED:
            wanted |= {NoticeKind.SUCCEEDED}
        for channel, kinds in (await self._subscriptions(notice)).items():
            if NoticeKind.ANSWER in kinds and notice.kind is not NoticeKind.RUN:
                self._add(_Owed(channel, NoticeKind.ANSWER, notice, None, self._now, again=False))
            elif not wanted.isdisjoint(kinds):
                self._add(_Owed(channel, notice.kind, notice, None, self._now, again=False))

    async def _wanting(self, notice: Notice) -> list[str]:
        """The channels that want to be told of this kind, by name."""
        found = await self._subscriptions(notice)
        return sorted(channel for channel, kinds in found.items() if notice.kind in kinds)

    async def _subscriptions(self, notice: Notice) -> dict[str, frozenset[str]]:
        """Of what each channel is told that this one concerns, by its policy and by rules."""
        channels = await self._known()
        found: dict[str, frozenset[str]] = {}
        for entry in notice.notify:
            try:
                one = parse_subscription(entry)
            except InvalidInput:  # stored when any text was taken: it names no channel
                continue
            if one.channel in channels:
                found[one.channel] = found.get(one.channel, frozenset()) | one.kinds
        for channel, kinds, project in self._rules:
            if project is None or project == notice.project:
                found[channel] = found.get(channel, frozenset()) | kinds
        return found

    async def _known(self) -> dict[str, Micros]:
        """The cool-downs of all channels."""
        if self._channels is None:
            rows: list[Any] = await self._db.fetch(_CHANNELS)
            self._channels = dict(rows)
            if rows:
                rules = await self._db.fetch(_RULES)
                self._rules = [(channel, frozenset(kinds.split(",")), project) for channel, kinds, project in rules]
        return self._channels

    def _add(self, owed: _Owed) -> None:
        """One message for each channel about one run; about an incident, if there is no run."""
        run = owed.notice.run
        about = (owed.channel, ("incident", owed.incident or owed.notice.subject) if run is None else ("run", run))
        before = self._owed.get(about)
        if before is None or _rank(owed) < _rank(before):
            self._owed[about] = owed
            if owed.incident is not None:
                self._of_incident.setdefault(owed.incident, []).append(about)

    def _told_of(self, id: IncidentId) -> list[tuple[_About, _Owed]]:
        """What is to be written of an incident, in its order."""
        found = [(about, self._owed.get(about)) for about in self._of_incident.get(id, ())]
        return [(about, owed) for about, owed in found if owed is not None and owed.incident == id]

    async def owe(self) -> bool:
        """Write the deliveries; whether there are any."""
        owed: Iterable[_Owed] = self._owed.values()
        if not self._owed:
            return False
        values = {
            "now": self._now,
            "keys": [new_key() for _ in owed],
            "channels": [one.channel for one in owed],
            "kinds": [one.kind for one in owed],
            "subjects": [one.notice.subject for one in owed],
            "ready": [one.ready_at for one in owed],
            "incidents": [one.incident for one in owed],
            "runs": [one.notice.run for one in owed],
            "schedules": [one.notice.schedule for one in owed],
            "data": [_data(one) for one in owed],
        }
        await self._db.run(_OWE, values)
        return True


def _joined(before: Notice, notice: Notice) -> Notice:
    """Both as one: the last of them, and since when."""
    since, first_run = (before.at, before.run) if before.since is None else (before.since, before.first_run)
    if notice.at < since:
        since, first_run = notice.at, notice.run
    return replace(
        notice if notice.at >= before.at else before,
        count=before.count + notice.count,
        due_at=notice.due_at if before.due_at is None else before.due_at,
        since=since,
        first_run=first_run,
    )


def _recovered(notice: Notice, closed: Sequence[IncidentChange]) -> Notice:
    """One notice for all the incidents that a success closes: how many failures there were, and why. What is late or
    was switched off is so because of others, which are counted already."""
    counted = [change.count for change in closed if change.cause not in (LATE, SWITCHED_OFF)]
    return replace(
        notice,
        kind=NoticeKind.RECOVERED,
        cause=closed[0].cause,
        count=sum(counted or [change.count for change in closed]),
        reason="; ".join(dict.fromkeys(change.reason for change in closed if change.reason)) or None,
    )


def _rank(owed: _Owed) -> tuple[bool, int, bool]:
    """What goes before: never one that waits, and may be dropped; of two alike, the one about an incident."""
    place = _FIRST.index(owed.kind) if owed.kind in _FIRST else len(_FIRST)
    return owed.again, place, owed.incident is None


def _data(owed: _Owed) -> str:
    """What the message says besides, as it was when it happened."""
    notice = owed.notice
    said: dict[str, Any] = {"cause": notice.cause, "reason": notice.reason, "count": notice.count}
    if notice.due_at is not None:
        said["due_at"] = notice.due_at
    if notice.project is not None:
        said["project"] = notice.project
    if owed.again:
        said[AGAIN] = True
    return msgspec.json.encode(said).decode()
