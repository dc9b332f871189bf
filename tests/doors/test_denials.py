"""Who was turned away is in the audit log, and nobody fills it by knocking."""

from __future__ import annotations

from ostinato.api.denials import MOST_AN_HOUR, MOST_ASKED
from tests.doors.command_line import eventually
from tests.doors.web import Web, web_on


def _settle(web: Web, entries: int) -> None:
    """What the clock set off is written when the log has so many entries."""
    eventually(lambda: len(web.denials()) >= entries, f"the log has {entries} entries")


def test_each_way_of_being_turned_away_is_noted_with_who_and_from_where(url: str) -> None:
    with web_on(url=url) as web:
        viewer = web.script("viewer", "kiosk")
        assert web.anybody("192.0.2.7").get("/api/runs").status_code == 401
        assert viewer.post("/api/lanes/main/pause").status_code == 403
        evil = {"Origin": "http://evil.example"}
        assert web.anybody("192.0.2.8").post("/api/login", {"code": "x"}, headers=evil).status_code == 403
        guesser = web.anybody("192.0.2.9")
        assert [guesser.post("/api/login", {"code": "wrong"}).status_code for _ in range(11)][-1] == 429
        assert web.denials() == [
            ("unknown", "192.0.2.7", "GET /api/runs", 401, 1),
            ("kiosk", "127.0.0.1", "POST /api/lanes/main/pause", 403, 1),
            ("unknown", "192.0.2.8", "POST /api/login", 403, 1),
            ("unknown", "192.0.2.9", "POST /api/login", 401, 1),
            ("unknown", "192.0.2.9", "POST /api/login", 429, 1),
        ]
        web.clock.advance("1m")
        _settle(web, 6)
        assert web.denials()[5:] == [("unknown", "192.0.2.9", "POST /api/login", 401, 9)]


def test_what_else_was_asked_for_in_a_minute_is_told(web: Web) -> None:
    viewer = web.script("viewer", "kiosk")
    viewer.post("/api/lanes/main/pause")
    for lane in ("cron", "team", "cron"):
        assert viewer.post(f"/api/lanes/{lane}/pause").status_code == 403
    web.clock.advance("1m")
    _settle(web, 2)
    _, rest = web.denials()
    assert rest == ("kiosk", "127.0.0.1", "POST /api/lanes/cron/pause and others", 403, 3)
    newest = web.run(web.container.services.audit.page(verb="denied")).items[0]
    assert newest.detail["asked"] == {"POST /api/lanes/cron/pause": 2, "POST /api/lanes/team/pause": 1}


def test_who_asks_for_ever_new_things_fills_no_entry(web: Web) -> None:
    for number in range(50):
        web.anybody("192.0.2.7").get(f"/api/{number}-" + "x" * 300)
    web.clock.advance("1m")
    _settle(web, 2)
    newest = web.run(web.container.services.audit.page(verb="denied")).items[0]
    assert newest.detail["count"] == 49
    assert len(newest.detail["asked"]) == MOST_ASKED + 1
    assert newest.detail["asked"]["others"] == 49 - MOST_ASKED


def test_what_is_granted_or_merely_wrong_is_no_denial(web: Web) -> None:
    operator = web.script("operator")
    assert operator.get("/api/runs").status_code == 200
    assert operator.get("/api/runs/99").status_code == 404
    assert operator.post("/api/runs", {}).status_code == 422
    assert web.denials() == []


def test_many_wrong_logins_are_a_few_entries_and_the_right_one_still_comes_in(url: str) -> None:
    with web_on(url=url) as web:
        token = web.token("viewer")
        statuses = [web.anybody("192.0.2.7").post("/api/login", {"code": "x"}).status_code for _ in range(100)]
        assert (statuses.count(401), statuses.count(429)) == (10, 90)
        assert web.anybody("198.51.100.1").post("/api/login", {"token": token}).status_code == 200
        assert web.anybody("192.0.2.7").post("/api/login", {"token": token}).status_code == 200
        web.clock.advance("1m")
        _settle(web, 4)
        assert [(status, count) for *_, status, count in web.denials()] == [(401, 1), (429, 1), (401, 9), (429, 89)]
        assert web.anybody("192.0.2.7").post("/api/login", {"code": "x"}).status_code == 401


def test_however_many_addresses_knock_the_log_grows_slowly(web: Web) -> None:
    for number in range(300):
        web.anybody(f"2001:db8::{number:x}").get("/api/me")
        web.clock.advance("1s")
    assert len(web.denials()) == MOST_AN_HOUR + 1
    assert web.denials()[-1][:2] == ("unknown", None)
    web.clock.advance("1h")
    _settle(web, MOST_AN_HOUR + 2)
    assert len(web.denials()) == MOST_AN_HOUR + 2
    assert sum(count for *_, count in web.denials()) == 300
    web.anybody("2001:db8::ffff").get("/api/me")
    assert web.denials()[-1][:2] == ("unknown", "2001:db8::ffff")
    attempts = web.app.state.authenticator._attempts
    assert len(attempts._by_address) <= 10_000


def test_what_was_asked_may_be_anything_and_is_cut(url: str) -> None:
    with web_on(url=url) as web:
        for number, path in enumerate(("/api/%00", "/api/%ff%0d%0a", "/api/" + "x" * 5_000, "/api/%E2%80%AE")):
            assert web.anybody(f"192.0.2.{number}").get(path).status_code == 401
        asked = [one[2] for one in web.denials()]
        assert len(asked) == 4
        assert all(len(one) <= 200 for one in asked)
