"""/ping and /badge: what their keys open without a login, and what they do not."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import pytest

from ostinato.api import ping_throttle
from ostinato.api.login_throttle import PER_ADDRESS
from ostinato.api.routes.pings import KEPT_OUTPUT
from ostinato.models.check_in import KeyPurpose
from tests.doors.web import Client, Web

SVG = "{http://www.w3.org/2000/svg}"


def add(admin: Client, name: str = "backup", **fields: Any) -> None:
    body = {"name": name, "timing": "daily 03:00", "zone": "UTC", "work": {"kind": "check_in"}, **fields}
    answer = admin.post("/api/schedules", body)
    assert answer.status_code == 201, answer.text


def ping_path(admin: Client, name: str = "backup", **body: bool) -> str:
    answer = admin.post(f"/api/schedules/{name}/ping-key", body)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["path"])


def badge_path(admin: Client, name: str = "backup") -> str:
    answer = admin.post(f"/api/schedules/{name}/badge-key")
    assert answer.status_code == 201, answer.text
    return str(answer.json()["path"])


def runs(admin: Client) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = admin.get("/api/runs").json()["items"]
    return found


@pytest.fixture
def path(admin: Client) -> str:
    """The ping address of a new check-in."""
    add(admin)
    return ping_path(admin)


@pytest.mark.parametrize("method", ["GET", "POST", "HEAD"])
def test_a_ping_needs_no_login_and_makes_a_run(web: Web, admin: Client, path: str, method: str) -> None:
    answer = web.anybody("192.0.2.7").send(method, path)
    assert (answer.status_code, answer.headers["cache-control"]) == (200, "no-store")
    (run,) = runs(admin)
    assert (run["state"], run["trigger"], run["schedule"]) == ("succeeded", "check_in", "backup")


@pytest.mark.parametrize(
    ("said", "state", "reason"),
    [
        ("/start", "running", None),
        ("/success", "succeeded", None),
        ("/fail", "failed", "it said that it failed"),
        ("/0", "succeeded", None),
        ("/3", "failed", "it ended with status 3"),
    ],
)
def test_what_a_ping_says_is_what_its_run_is(
    web: Web, admin: Client, path: str, said: str, state: str, reason: str | None
) -> None:
    assert web.anybody().get(path + said).status_code == 200
    (run,) = runs(admin)
    assert (run["state"], run["reason"]) == (state, reason)


@pytest.mark.parametrize("said", ["/256", "/-1", "/stop", "/1e1", "/start/now", "/²"])
def test_other_words_are_nothing(web: Web, admin: Client, path: str, said: str) -> None:
    assert web.anybody().get(path + said).status_code == 404
    assert runs(admin) == []


def test_a_body_is_the_output_of_the_run(web: Web, admin: Client, path: str) -> None:
    web.anybody().send("POST", path, content=b"copied 3 files\ndone\n")
    (run,) = runs(admin)
    assert admin.get(f"/api/runs/{run['id']}/output").text == "copied 3 files\ndone\n"


def test_of_a_long_body_the_end_is_kept_and_the_ping_counts(web: Web, admin: Client, path: str) -> None:
    lines = "".join(f"line {number}\n" for number in range(30_000))
    answer = web.anybody().send("POST", path, content=lines.encode())
    assert answer.status_code == 200
    (run,) = runs(admin)
    output = admin.get(f"/api/runs/{run['id']}/output").text
    assert output.endswith("line 29999\n")
    assert "bytes cut" in output
    assert len(output) < KEPT_OUTPUT + 1_000


def test_what_is_no_key_is_answered_as_any_other_address(web: Web, admin: Client, path: str) -> None:
    stranger = web.anybody("192.0.2.8")
    for wrong in ("/ping/wrong", path[:-1], f"{path}x", f"/ping/{'x' * 5_000}", "/ping/%C3%A9"):
        answer = stranger.get(wrong)
        assert (answer.status_code, answer.json()["detail"]) == (404, "there is nothing at this address"), wrong
    assert runs(admin) == []


def test_a_badge_key_pings_nothing_and_a_ping_key_shows_nothing(web: Web, admin: Client, path: str) -> None:
    shown = badge_path(admin)
    key, badge_key = path.removeprefix("/ping/"), shown.removeprefix("/badge/").removesuffix(".svg")
    assert web.anybody().get(f"/ping/{badge_key}").status_code == 404
    assert web.anybody().get(f"/badge/{key}.svg").status_code == 404
    assert runs(admin) == []


def test_whoever_guesses_has_few_tries_and_machines_that_are_known_go_on(web: Web, admin: Client, path: str) -> None:
    stranger = web.anybody("192.0.2.9")
    assert stranger.get(path).status_code == 200
    answers = [stranger.get(f"/ping/guess{number}").status_code for number in range(PER_ADDRESS + 1)]
    assert answers == [404] * PER_ADDRESS + [429]
    assert stranger.get(path).status_code == 200
    add(admin, "other")
    other = ping_path(admin, "other")
    assert stranger.get(other).status_code == 429, "nobody knows whether it is one more guess"
    assert web.anybody("192.0.2.10").get(other).status_code == 200


@pytest.mark.parametrize("place", ["/ping/{}", "/ping/{}/start", "/badge/{}.svg"])
def test_guesses_of_who_has_to_wait_cost_no_read(web: Web, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    keys = [f"{number:024}" for number in range(PER_ADDRESS + 20)]
    stranger = web.anybody("192.0.2.9")
    looked_up: list[str] = []
    store = web.container.store.check_ins

    async def schedule_of_key(hash: str, purpose: KeyPurpose) -> str | None:
        looked_up.append(hash)
        return None

    monkeypatch.setattr(store, "schedule_of_key", schedule_of_key)
    answers = [stranger.get(place.format(key)).status_code for key in keys]
    assert answers == [404] * PER_ADDRESS + [429] * 20
    assert len(looked_up) == PER_ADDRESS


def test_a_key_that_was_replaced_is_a_guess_like_any_other(web: Web, admin: Client, path: str) -> None:
    stranger = web.anybody("192.0.2.9")
    assert stranger.get(path).status_code == 200
    ping_path(admin, new=True)
    answers = [stranger.get(path).status_code for _ in range(PER_ADDRESS + 1)]
    assert answers == [404] * PER_ADDRESS + [429]


def test_a_machine_that_checks_in_all_the_time_is_asked_to_wait(
    web: Web, admin: Client, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ping_throttle, "PER_KEY", 3)
    answers = [web.anybody().get(path) for _ in range(4)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    assert answers[-1].headers["retry-after"] == "60"
    # The key is a secret: what was denied is noted without it.
    noted = admin.get("/api/audit").text
    assert path.removeprefix("/ping/") not in noted
    assert "/ping/…" in noted
    web.clock.advance("1m")
    assert web.anybody().get(path).status_code == 200


def test_a_key_is_shown_once_and_a_new_one_ends_it(web: Web, admin: Client, path: str) -> None:
    again = admin.post("/api/schedules/backup/ping-key")
    assert (again.status_code, "--new" in again.json()["detail"]) == (409, True)
    new = ping_path(admin, new=True)
    assert web.anybody().get(path).status_code == 404
    assert web.anybody().get(new).status_code == 200
    for where in ("/api/schedules/backup", "/api/audit", "/api/runs"):
        assert new.removeprefix("/ping/") not in admin.get(where).text


def test_only_a_check_in_has_a_ping_address(admin: Client) -> None:
    add(admin, "call", work={"kind": "http", "method": "GET", "url": "https://example.com"})
    answer = admin.post("/api/schedules/call/ping-key")
    assert (answer.status_code, "its work is http" in answer.json()["detail"]) == (409, True)


def test_viewers_make_no_keys(web: Web, admin: Client, path: str) -> None:
    assert web.script("viewer").post("/api/schedules/backup/badge-key").status_code == 403


def test_nobody_runs_a_check_in_by_hand(web: Web, admin: Client, path: str) -> None:
    trigger = admin.post("/api/schedules/backup/trigger")
    assert (trigger.status_code, "checks in" in trigger.json()["detail"]) == (409, True)
    web.anybody().get(f"{path}/1")
    (run,) = runs(admin)
    assert admin.post(f"/api/runs/{run['id']}/retry").status_code == 409
    span = {"from": "2025-12-01T00:00:00Z", "until": "2025-12-02T00:00:00Z"}
    assert admin.post("/api/schedules/backup/backfill", span).status_code == 409


def test_an_operator_may_add_a_check_in_and_sees_when_it_is_late(operator: Client) -> None:
    add(operator, work={"kind": "check_in", "late_after": "90 m"})
    work = operator.get("/api/schedules/backup").json()["work"]
    assert work == {"kind": "check_in", "late_after": "1h30m"}
    wrong = operator.post(
        "/api/schedules", {"name": "x", "timing": "daily 03:00", "work": {"kind": "check_in", "late_after": "soon"}}
    )
    assert (wrong.status_code, wrong.json()["errors"][0]["field"]) == (422, "work.late_after")


def state_of(web: Web, path: str) -> str:
    answer = web.anybody("192.0.2.7").get(path)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "image/svg+xml")
    assert answer.headers["cache-control"] == "public, max-age=60"
    texts = [text.text for text in ElementTree.fromstring(answer.text).iter(f"{SVG}text")]
    return str(texts[1])


def test_a_badge_says_how_its_schedule_is(web: Web, admin: Client, path: str) -> None:
    badge = badge_path(admin)
    assert state_of(web, badge) == "no runs yet"
    for said, state in (("/1", "failing"), ("", "ok"), ("/start", "ok")):
        web.anybody().get(path + said)
        assert state_of(web, badge) == state
    admin.post("/api/schedules/backup/disable")
    assert state_of(web, badge) == "off"


def test_a_badge_executes_nothing(web: Web, admin: Client) -> None:
    name = "<script>alert(1)</script>\"'&"
    add(admin, name)
    answer = admin.post("/api/schedules/%3Cscript%3Ealert(1)%3C%2Fscript%3E%22'%26/badge-key")
    text = web.anybody().get(answer.json()["path"]).text
    assert "<script" not in text
    root = ElementTree.fromstring(text)
    assert next(one.text for one in root.iter(f"{SVG}text")) == name
    assert not [one for one in root.iter() if one.tag in (f"{SVG}script", f"{SVG}foreignObject", f"{SVG}style")]


def test_a_schedule_says_until_when_it_is_fresh(web: Web, admin: Client) -> None:
    add(admin, policy={"fresh": "26h"})
    schedule = admin.get("/api/schedules/backup").json()
    assert (schedule["late"], schedule["fresh_until"] is not None, schedule["policy"]["fresh"]) == (False, True, "1d2h")
    why = admin.get("/api/schedules/backup/why").json()
    assert any(fact.startswith("fresh until ") for fact in why["facts"])


def test_a_badge_of_what_succeeded_with_errors_has_a_look_of_its_own(web: Web, admin: Client, path: str) -> None:
    shown = badge_path(admin)
    looks: dict[str, str] = {}
    for change in ("cause = NULL", "cause = 'errors'", "state = 'failed', cause = 'exit_status'"):
        web.anybody().get(path)
        web.sql(f"UPDATE runs SET {change} WHERE id = (SELECT max(id) FROM runs)")
        picture = ElementTree.fromstring(web.anybody().get(shown).text)
        looks[picture.attrib["aria-label"]] = picture.findall(f"{SVG}rect")[1].attrib["fill"]
    assert list(looks) == ["backup: ok", "backup: with errors", "backup: failing"]
    assert len(set(looks.values())) == 3
