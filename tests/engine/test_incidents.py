"""Incidents: what an engine makes of failures, misses and recoveries, whoever is told of it."""

from __future__ import annotations

from ostinato import Ostinato
from ostinato.engine.node import Engine
from ostinato.models.incident import Incident, IncidentFilter, IncidentState
from ostinato.models.notification import RULE_KINDS, ChannelDraft, Delivery, DeliveryFilter, NoticeKind, RuleDraft
from ostinato.testing import FakeClock, drain, simulate


def incidents(app: Ostinato, state: IncidentState | None = None) -> list[Incident]:
    async def look(engine: Engine) -> list[Incident]:
        return await engine.store.notifications.list_incidents(IncidentFilter(state=state))

    return app.with_engine(look)


def deliveries(app: Ostinato) -> list[Delivery]:
    async def look(engine: Engine) -> list[Delivery]:
        return (await engine.store.notifications.list_deliveries(DeliveryFilter()))[::-1]

    return app.with_engine(look)


def tell(app: Ostinato, *kinds: NoticeKind) -> None:
    """A channel that is told of these kinds, or of what goes wrong."""

    async def add(engine: Engine) -> None:
        now = engine.clock.now()
        await engine.store.notifications.put_channel(ChannelDraft("phone", "json://phone.example"), now)
        await engine.store.notifications.put_rule(RuleDraft("phone", frozenset(kinds) or RULE_KINDS), now)

    app.with_engine(add)


def test_ten_thousand_failures_are_one_incident_for_each_cause(memory_app: Ostinato) -> None:
    tell(memory_app)

    @memory_app.task(retry=0)
    async def fragile(number: int) -> None:
        if number % 2:
            raise ValueError(number)
        raise OSError(number)

    fragile.enqueue_many([(number,) for number in range(10_000)])
    drain(memory_app)
    (incident,) = incidents(memory_app)
    assert (incident.cause, incident.count, incident.subject) == ("raised", 10_000, "fragile")
    assert len(deliveries(memory_app)) == 1


def test_a_schedule_that_fails_and_recovers_is_told_twice(app: Ostinato) -> None:
    tell(app)
    outcomes = ["no", "no", "yes", "yes"]

    @app.task("job", retry=0)
    def job() -> None:
        if outcomes.pop(0) == "no":
            raise ValueError("boom")

    app.schedules.add("report", "every 1h", job)
    simulate(app, lasting="4h")
    assert [(one.kind, one.subject, one.data["count"]) for one in deliveries(app)] == [
        ("failed", "report", 1),
        ("recovered", "report", 2),
    ]
    (incident,) = incidents(app)
    assert (incident.state, incident.count, incident.schedule) == ("closed", 2, "report")


def test_due_times_that_nobody_ran_are_an_incident_until_the_next_success(app: Ostinato, fake_clock: FakeClock) -> None:
    tell(app)
    app.schedules.add("report", "every 1h", app.task("job")(lambda: None), catch_up="none")
    fake_clock.advance("5h30m")
    drain(app)
    (incident,) = incidents(app)
    assert (incident.state, incident.kind, incident.cause, incident.count) == ("open", "missed", "downtime", 5)
    simulate(app, lasting="1h")
    assert [one.kind for one in deliveries(app)] == ["missed", "recovered"]
    assert incidents(app, IncidentState.OPEN) == []


def test_who_wants_to_hear_of_successes_does(app: Ostinato) -> None:
    app.task("before")(lambda: None).enqueue()
    drain(app)
    tell(app, NoticeKind.SUCCEEDED)
    app.task("after")(lambda: None).enqueue()
    drain(app)
    assert [(one.kind, one.subject) for one in deliveries(app)] == [("succeeded", "after")]


def test_a_schedule_that_names_a_channel_is_told_of_its_end_only(app: Ostinato) -> None:
    tell(app, NoticeKind.LATE)
    app.schedules.add("loud", "every 1h", app.task("loud")(lambda: None), notify=["phone"])
    app.schedules.add("quiet", "every 1h", app.task("quiet")(lambda: None))
    simulate(app, lasting="1h")
    assert [(one.kind, one.subject) for one in deliveries(app)] == [("succeeded", "loud")]


def test_a_retry_tells_nothing(app: Ostinato) -> None:
    tell(app)
    tries = [ValueError("first")]

    @app.task("job", retry=1)
    def job() -> None:
        if tries:
            raise tries.pop()

    job.enqueue()
    simulate(app, lasting="1h")
    assert (incidents(app), deliveries(app)) == ([], [])
