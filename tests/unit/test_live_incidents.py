"""What is published of incidents: opened, changed or closed, by when that was written and not by when it happened."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ostinato.clock import to_micros
from ostinato.models.ids import IncidentId
from ostinato.models.incident import Incident, IncidentState
from ostinato.models.live import ChangedIncident, Changes, LiveKind
from ostinato.models.notification import NoticeKind
from ostinato.service.live.changes import PublishedSoFar, Tail

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LONG_AGO = NOW - timedelta(hours=1)
OPEN = Incident(
    id=IncidentId(1),
    subject="backup",
    cause="raised",
    kind=NoticeKind.FAILED,
    state=IncidentState.OPEN,
    opened_at=LONG_AGO,
    last_at=LONG_AGO,
    closed_at=None,
    count=1,
    reopened=0,
    reason=None,
    first_run=None,
    last_run=None,
    schedule=None,
    project=None,
)
CLOSED = replace(OPEN, state=IncidentState.CLOSED, closed_at=LONG_AGO)


def told_of(*looks: ChangedIncident) -> list[LiveKind]:
    so_far = PublishedSoFar(to_micros(NOW), Tail(), Tail(), Tail())
    kinds: list[LiveKind] = []
    for look in looks:
        found = Changes((), (), (), (), (), (), (), 0, incidents=[look])
        events, _ = so_far.changes(so_far.position(), found, to_micros(NOW), 10)
        kinds += [event.kind for event in events]
    return kinds


@pytest.mark.parametrize(
    ("incident", "turned_at", "kind"),
    [
        (OPEN, NOW, LiveKind.INCIDENT_OPENED),
        (replace(OPEN, reopened=1), NOW, LiveKind.INCIDENT_OPENED),
        (CLOSED, NOW, LiveKind.INCIDENT_CLOSED),
        (OPEN, LONG_AGO, LiveKind.INCIDENT_CHANGED),
        (CLOSED, LONG_AGO, LiveKind.INCIDENT_CHANGED),
    ],
    ids=["opened", "reopened", "closed", "changed", "told after it closed"],
)
def test_what_was_not_published_lately_is_what_was_written_of_it_last(
    incident: Incident, turned_at: datetime, kind: LiveKind
) -> None:
    assert told_of(ChangedIncident(incident, NOW, turned_at)) == [kind]


def test_each_turn_is_published_once() -> None:
    def at(seconds: int, turned: int, incident: Incident = OPEN, **fields: Any) -> ChangedIncident:
        return ChangedIncident(
            replace(incident, **fields), NOW + timedelta(seconds=seconds), NOW + timedelta(seconds=turned)
        )

    looks = [at(0, 0), at(0, 0), at(0, 0, count=2), at(2, 2, CLOSED), at(3, 2, CLOSED), at(4, 4, reopened=1)]
    assert told_of(*looks) == [
        LiveKind.INCIDENT_OPENED,
        LiveKind.INCIDENT_CHANGED,
        LiveKind.INCIDENT_CLOSED,
        LiveKind.INCIDENT_CHANGED,
        LiveKind.INCIDENT_OPENED,
    ]
