"""The notifier: what is owed to channels is sent, retried, held back and recorded, and one channel delays no other."""

from __future__ import annotations

import logging
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ostinato import Ostinato, Shell
from ostinato.clock import SECOND, to_micros
from ostinato.engine.node import Engine
from ostinato.errors import StoreUnavailable
from ostinato.models.notification import MESSAGES_A_MINUTE, DeliveryState, NoticeKind, RuleDraft
from ostinato.notifications.sender import backoff
from ostinato.stores.base import Parcel
from ostinato.testing import FakeClock, drain, simulate
from ostinato.testing.store_suite.builders import beat
from tests.engine.conftest import MakeApp, eventually, on_shared
from tests.engine.http_server import Server, Visit, answer
from tests.engine.notify_fixtures import (
    app,
    channel,
    channel_of,
    deliveries,
    hook,
    memory_app,
    owe,
    said,
    server,
    states,
)

__all__ = ["app", "memory_app", "server"]


def test_a_message_is_posted_with_its_key_and_recorded(app: Ostinato, server: Server) -> None:
    hook(app, server)
    owed = owe(app, reason="exit status 1")
    drain(app)
    (received,) = server.received
    assert said(received)["title"] == "✗ nightly failed"
    assert said(received)["message"] == f"exit status 1\n#{owed.key}"
    assert said(received)["type"] == "failure"
    assert received.headers["ostinato-delivery"] == owed.key
    (sent,) = deliveries(app)
    assert (sent.state, sent.attempts, sent.error, sent.message) == (DeliveryState.SENT, 1, None, owed.key)
    assert channel_of(app).sent_at == app.clock.now()
    drain(app)
    assert len(server.received) == 1


def test_a_run_that_fails_is_told_with_what_it_printed(app: Ostinato, server: Server) -> None:
    @app.task("nightly", retry=0, notify=["phone"])
    def nightly() -> None:
        raise ValueError("no space left")

    hook(app, server)
    nightly.enqueue()
    drain(app)
    (received,) = server.received
    assert said(received)["title"] == "✗ nightly failed"
    assert "no space left" in said(received)["message"]
    assert "Took " in said(received)["message"]


def test_each_command_without_a_schedule_has_its_own_incident(app: Ostinato, server: Server) -> None:
    hook(app, server)
    app.notifications.add_rule("phone")
    for command in ("exit 3", "exit 4", "exit 4", "true"):
        app.execute(Shell(command), retry=0)
    titles = [said(visit)["title"] for visit in server.received]
    assert titles == ["✗ exit 3 failed", "✗ exit 4 failed"]
    assert sorted(one.count for one in app.incidents.list(state="open")) == [1, 2]
    assert [len(app.incidents.rerun(one.id).runs) for one in app.incidents.list()] == [2, 1]
    subjects = {one.subject for one in app.incidents.list()}
    assert len(subjects) == 2
    assert all(name.startswith("shell ") and "exit" not in name for name in subjects)


def test_the_success_of_the_same_command_closes_its_incident(
    memory_app: Ostinato, server: Server, tmp_path: Path
) -> None:
    hook(memory_app, server)
    memory_app.notifications.add_rule("phone")
    command = f"test -e {tmp_path}/well"
    memory_app.execute(Shell(command), retry=0)
    (tmp_path / "well").touch()
    memory_app.execute(Shell(command), retry=0)
    assert [incident.state for incident in memory_app.incidents.list()] == ["closed"]
    assert said(server.received[-1])["title"].endswith(" recovered")


def test_what_was_claimed_without_an_answer_is_sent(app: Ostinato, server: Server) -> None:
    hook(app, server)
    owed = owe(app)

    async def send(engine: Engine) -> None:
        claim, errors = engine.store.notifications.claim_deliveries, [StoreUnavailable("the answer was lost")]

        async def lost(*asked: Any) -> list[Parcel]:
            parcels = await claim(*asked)
            if errors:
                raise errors.pop()
            return parcels

        engine.store.notifications.claim_deliveries = lost  # type: ignore[method-assign, assignment]
        with pytest.raises(StoreUnavailable):
            await engine.notifier.send_due()
        await engine.notifier.send_due()

    app.with_engine(send)
    assert [visit.headers["ostinato-delivery"] for visit in server.received] == [owed.key]
    assert states(app) == ["sent"]


def test_an_address_that_is_not_public_is_refused_unless_it_is_allowed(make_app: MakeApp, server: Server) -> None:
    app = make_app("sqlite://:memory:")
    hook(app, server)
    owe(app)
    drain(app)
    (tried,) = deliveries(app)
    assert (tried.state, tried.attempts) == (DeliveryState.PENDING, 1)
    assert tried.error == (
        "127.0.0.1 resolves to 127.0.0.1, which is a loopback address; "
        'allow it with notify_allow = ["127.0.0.0/8"] in ostinato.toml, or OSTINATO_NOTIFY_ALLOW=127.0.0.0/8'
    )
    assert server.received == []


def test_a_name_that_leads_inside_is_refused_too(make_app: MakeApp, server: Server) -> None:
    app = make_app("sqlite://:memory:")
    channel(app, f"json://localhost:{server.port}/")
    channel(app, f"mailto://ada:secret@example.org?smtp=localhost&port={server.port}&to=b@example.org", "mail")
    owe(app)
    owe(app, "mail")
    drain(app)
    assert all("localhost resolves to" in (one.error or "") for one in deliveries(app))


def test_a_redirect_is_not_followed(memory_app: Ostinato, server: Server) -> None:
    server.on("/inside", answer())
    hook(memory_app, server, answer("302 Found", Location=server.url("/inside")))
    drain(memory_app)
    owe(memory_app)
    drain(memory_app)
    assert [one.path for one in server.received] == ["/phone"]
    assert states(memory_app) == ["pending"]


def test_a_redirect_that_the_url_asks_for_is_not_followed_either(memory_app: Ostinato, server: Server) -> None:
    server.on("/inside", answer())
    url = server.on("/out", answer("307 Temporary Redirect", Location=server.url("/inside")))
    channel(memory_app, url.replace("http://", "json://") + "?redirect=yes")
    owe(memory_app)
    drain(memory_app)
    assert [one.path for one in server.received] == ["/out"]


def test_a_failed_message_is_tried_again_later_with_the_same_key(
    app: Ostinato, server: Server, fake_clock: FakeClock
) -> None:
    answers = iter(["500 Internal Server Error", "503 Service Unavailable", "200 OK"])
    hook(app, server, lambda visit: visit.answer(next(answers)))
    owed = owe(app)
    drain(app)
    (tried,) = deliveries(app)
    assert (tried.state, tried.attempts) == (DeliveryState.PENDING, 1)
    assert "500" in (tried.error or "")
    drain(app)
    assert len(server.received) == 1
    simulate(app, lasting="1m")
    (sent,) = deliveries(app)
    assert (sent.state, sent.attempts) == (DeliveryState.SENT, 3)
    assert {one.headers["ostinato-delivery"] for one in server.received} == {owed.key}
    assert channel_of(app).failures == 0


def test_the_pauses_grow_and_have_a_bound() -> None:
    seconds = [backoff(failures, 0.5).total_seconds() for failures in range(9)]
    assert seconds == [5, 10, 20, 40, 80, 160, 300, 300, 300]
    assert (backoff(0, 0).total_seconds(), backoff(0, 1).total_seconds()) == (3.75, 6.25)


def test_what_nobody_takes_is_tried_for_a_day(memory_app: Ostinato, server: Server, fake_clock: FakeClock) -> None:
    hook(memory_app, server, answer("500 Internal Server Error"))
    owe(memory_app)
    simulate(memory_app, lasting="2h")
    assert len(server.received) > 20
    fake_clock.advance("21h50m")
    drain(memory_app)
    assert states(memory_app) == ["pending"]
    fake_clock.advance("10m")
    drain(memory_app)
    (failed,) = deliveries(memory_app)
    assert (failed.state, failed.attempts) == (DeliveryState.FAILED, len(server.received))


def test_the_day_begins_with_the_first_try(memory_app: Ostinato, server: Server, fake_clock: FakeClock) -> None:
    """However long no node was there to try it."""
    answers = iter(["500 Internal Server Error", "200 OK"])
    hook(memory_app, server, lambda visit: visit.answer(next(answers)))
    owe(memory_app)
    fake_clock.advance("25h")
    simulate(memory_app, lasting="1m")
    assert [(one.state, one.attempts) for one in deliveries(memory_app)] == [(DeliveryState.SENT, 2)]


def test_a_test_is_tried_once(memory_app: Ostinato, server: Server) -> None:
    hook(memory_app, server, answer("500 Internal Server Error"))
    owe(memory_app, kind=NoticeKind.TEST)
    drain(memory_app)
    assert states(memory_app) == ["failed"]


def reset(visit: Visit) -> None:
    visit.reset()


def garbage(visit: Visit) -> None:
    visit.send(b"\x00\xff this is no HTTP\r\n\r\n")


@pytest.mark.parametrize("handler", [reset, garbage, lambda _: None], ids=["reset", "garbage", "closed"])
def test_a_server_that_breaks_off_or_talks_nonsense_is_a_failed_try(
    memory_app: Ostinato, server: Server, handler: object
) -> None:
    hook(memory_app, server, handler)  # type: ignore[arg-type]
    owe(memory_app)
    drain(memory_app)
    (tried,) = deliveries(memory_app)
    assert (tried.state, tried.attempts) == (DeliveryState.PENDING, 1)
    assert "onnection error" in (tried.error or "")


def test_a_server_that_is_not_there_is_a_failed_try(memory_app: Ostinato, server: Server) -> None:
    port = server.port
    server.close()
    channel(memory_app, f"json://127.0.0.1:{port}/")
    owe(memory_app)
    drain(memory_app)
    assert states(memory_app) == ["pending"]


def test_nothing_of_the_url_is_in_what_is_kept_and_logged(
    memory_app: Ostinato, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server.on("/deadbeef99", answer("500 Internal Server Error"))
    channel(memory_app, f"json://ada:hunter2secret@127.0.0.1:{server.port}/deadbeef99?rto=7")
    channel(memory_app, "slack://T1JJ3T3L2/broken", "chat")
    channel(memory_app, "thisisnothing://T1JJ3T3L2", "other")
    for name in ("phone", "chat", "other"):
        owe(memory_app, name)
    drain(memory_app)
    kept = "".join(one.error or "" for one in deliveries(memory_app))
    assert "apprise cannot use thisisnothing://***" in kept
    logged = "".join(record.getMessage() for record in caplog.records)
    assert "told" in logged or "channel" in logged
    for secret in ("hunter2secret", "deadbeef99", "T1JJ3T3L2"):
        assert secret not in kept + logged


def test_what_apprise_says_is_logged_once_as_what_became_of_the_message(
    memory_app: Ostinato, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    hook(memory_app, server)
    hook(memory_app, server, answer("500 Internal Server Error"), "dead")
    owe(memory_app)
    owe(memory_app, "dead")
    drain(memory_app)
    about = [record for record in caplog.records if "phone" in record.getMessage() or "dead" in record.getMessage()]
    assert [record.name.partition(".")[0] for record in about] == ["ostinato", "ostinato"]
    assert not [record for record in caplog.records if record.name == "apprise"]
    (failed,) = [one for one in deliveries(memory_app) if one.channel == "dead"]
    assert "error=500" in (failed.error or "")
    import apprise

    apprise.Apprise.instantiate("nosuchservice://x")
    assert [record.name for record in caplog.records].count("apprise") == 1, "others hear what they do themselves"


def test_a_reference_is_read_when_the_message_is_sent(
    memory_app: Ostinato, server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    server.on("/in", answer())
    url = server.url("/in").replace("http://", "json://")
    (tmp_path / "phone").write_text(f"{url}\n")
    channel(memory_app, "env:PHONE_URL")
    channel(memory_app, f"file:{tmp_path / 'phone'}", "mail")
    owe(memory_app)
    owe(memory_app, "mail")
    drain(memory_app)
    unset, read = deliveries(memory_app)
    assert (unset.state, read.state) == ("pending", "sent")
    assert "the engine's environment has no PHONE_URL" in (unset.error or "")
    monkeypatch.setenv("PHONE_URL", url)
    simulate(memory_app, lasting="10s")
    assert states(memory_app) == ["sent", "sent"]


def test_a_telegram_channel_without_a_bot_says_so(memory_app: Ostinato, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where there is no aiogram, which takes its time to be loaded."""
    monkeypatch.setitem(sys.modules, "aiogram", None)
    monkeypatch.setitem(sys.modules, "aiogram.types", None)
    channel(memory_app, "telegram://42")
    owe(memory_app)
    drain(memory_app)
    (tried,) = deliveries(memory_app)
    assert "no Telegram bot" in (tried.error or "")


def test_what_is_sent_for_a_removed_channel_is_dropped(memory_app: Ostinato, server: Server) -> None:
    owe(memory_app, "gone")
    drain(memory_app)
    (dropped,) = deliveries(memory_app)
    assert (dropped.state, dropped.error) == (DeliveryState.DROPPED, "its channel was removed")


def test_many_notices_become_one_message_and_a_minute_has_few(
    app: Ostinato, server: Server, fake_clock: FakeClock
) -> None:
    hook(app, server)
    owe(app, kind=NoticeKind.RECOVERED)
    for number in range(29):
        owe(app, subject=f"job-{number}")
    drain(app)
    assert [said(one)["title"] for one in server.received] == ["30 notices: 29 failed, 1 recovered"]
    assert said(server.received[0])["type"] == "failure", "that of the worst of them"
    for number in range(MESSAGES_A_MINUTE + 5):
        owe(app, subject=f"job-{number}")
        drain(app)
    assert len(server.received) == MESSAGES_A_MINUTE
    fake_clock.advance("1m")
    drain(app)
    assert said(server.received[-1])["title"] == "6 notices: 6 failed"
    assert set(states(app)) == {"sent"}


def test_a_channel_says_why_it_waits_however_much_there_is(memory_app: Ostinato, server: Server) -> None:
    hook(memory_app, server)

    async def owe_later(engine: Engine) -> None:
        now = engine.clock.now()
        await engine.store.nodes.renew(replace(beat("sends"), now=now, lease_until=now + 3_600 * SECOND))
        for later in (0, *range(1, 60)):
            await engine.store.notifications.add_delivery("phone", "failed", "job", {}, now + later * SECOND)

    memory_app.with_engine(owe_later)
    found = memory_app.notifications.get("phone")
    assert (found.waiting, found.waits) == (60, None), "the first is about to be sent"


def test_quiet_hours_hold_back_what_can_wait(memory_app: Ostinato, server: Server, fake_clock: FakeClock) -> None:
    fake_clock.move_to("2026-11-17T22:30:00+00:00")
    hook(memory_app, server, quiet="23:00-07:00", zone="Europe/Berlin")
    owe(memory_app)
    drain(memory_app)
    owe(memory_app, kind=NoticeKind.TEST)
    drain(memory_app)
    assert states(memory_app) == ["pending", "sent"]
    assert [one.attempts for one in deliveries(memory_app)] == [0, 1]
    fake_clock.move_to("2026-11-18T05:59:59+00:00")
    drain(memory_app)
    assert len(server.received) == 1
    fake_clock.move_to("2026-11-18T06:00:00+00:00")
    drain(memory_app)
    assert states(memory_app) == ["sent", "sent"]


def test_a_channel_with_a_digest_gets_one_message_at_its_time(
    memory_app: Ostinato, server: Server, fake_clock: FakeClock
) -> None:
    fake_clock.move_to("2026-11-17T09:00:00+00:00")
    hook(memory_app, server, digest="daily 08:00")
    for number in range(2):
        owe(memory_app, subject=f"job-{number}")
        drain(memory_app)
        fake_clock.advance("1h")
    assert server.received == []
    simulate(memory_app, until="2026-11-18T08:00:00+00:00")
    assert [said(one)["title"] for one in server.received] == ["2 notices: 2 failed"]


def test_a_rule_sends_its_summary_at_its_time_and_again(
    memory_app: Ostinato, server: Server, fake_clock: FakeClock
) -> None:
    fake_clock.move_to("2026-11-17T09:00:00+00:00")
    hook(memory_app, server)
    task = memory_app.task("job", retry=0)(lambda: 1 / 0)
    first = to_micros(fake_clock.now_utc()) + 23 * 3_600 * SECOND
    rule = RuleDraft("phone", frozenset(), None, "daily 08:00", "UTC", first)
    memory_app.with_engine(lambda engine: engine.store.notifications.put_rule(rule, engine.clock.now()))
    task.enqueue()
    simulate(memory_app, lasting="2d")
    assert [said(one)["title"] for one in server.received] == [
        "Summary of everything: 1 run, 1 failed",
        "Summary of everything: 0 runs",
    ]


def test_the_summaries_of_every_second_week_are_counted_from_when_the_rule_was_made(
    memory_app: Ostinato, server: Server, fake_clock: FakeClock
) -> None:
    fake_clock.move_to("2026-11-16T09:00:00+00:00")  # A Monday.
    hook(memory_app, server)
    memory_app.task("job")(lambda: None)
    memory_app.notifications.add_rule("phone", digest="every 2 weeks on monday 10:00")
    simulate(memory_app, lasting="28d")
    assert len(server.received) == 2
    simulate(memory_app, lasting="2h")
    assert len(server.received) == 3


@on_shared
def test_two_nodes_send_each_message_once(
    shared_db: str, make_app: MakeApp, server: Server, fake_clock: FakeClock
) -> None:
    first, second = (make_app(shared_db, notify_allow=("private",)) for _ in range(2))
    names = [f"channel-{number}" for number in range(6)]
    for name in names:
        hook(first, server, name=name)
    first.start()
    second.start()
    for name in names:
        for number in range(3):
            owe(first if number % 2 else second, name, subject=f"job-{number}")
    eventually(lambda: set(states(first)) == {"sent"})
    counted = Counter(one.headers["ostinato-delivery"] for one in server.received)
    assert set(counted.values()) == {1}
    assert len(counted) == 6 * 3


def test_what_was_sent_is_counted(memory_app: Ostinato, server: Server) -> None:
    hook(memory_app, server)
    hook(memory_app, server, answer("500 Internal Server Error"), "mail")
    memory_app.start()
    owe(memory_app)
    owe(memory_app, "mail", NoticeKind.TEST)
    eventually(lambda: states(memory_app) == ["sent", "failed"])

    async def shape(engine: object) -> object:
        return engine.statistics.shape()["told"]  # type: ignore[attr-defined]

    assert memory_app.with_engine(shape) == {"phone": {"sent": 1}, "mail": {"failed": 1}}
