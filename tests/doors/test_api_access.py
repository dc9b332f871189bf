"""Who gets in: tokens, login links, cookies, and how often a wrong one may come."""

from __future__ import annotations

import hashlib
from datetime import timedelta

import pytest

from ostinato.clock import Micros
from ostinato.config import db_argument
from ostinato.errors import StoreUnavailable
from ostinato.models.access import Token
from tests.doors.web import Client, Web, web_on


def _problem(client: Client, method: str, path: str, **parts: object) -> tuple[int, str]:
    answer = client.send(method, path, **parts)
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["status"] == answer.status_code
    return answer.status_code, answer.json()["type"]


@pytest.mark.parametrize("path", ["/api/me", "/api/schedules", "/api/tokens", "/api/nothing", "/api"])
def test_nothing_under_api_is_told_to_somebody_unknown(web: Web, path: str) -> None:
    answer = web.anybody().get(path)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.json()["type"] == "/problems/not-logged-in"


def test_the_description_of_the_api_is_for_everybody(web: Web) -> None:
    document = web.anybody().get("/api/openapi.json").json()
    assert document["openapi"].startswith("3.1")
    assert "/api/me" in document["paths"]


def test_a_token_is_who_asks_and_needs_no_origin_key(web: Web) -> None:
    script = web.script("viewer", "ci")
    me = script.get("/api/me").json()
    assert (me["who"], me["role"], me["db"]) == ("ci", "viewer", None)
    assert web.script("operator", "deploy").get("/api/me").json()["db"] == db_argument(web.container.settings.db)
    assert script.post("/api/logout").status_code == 204


@pytest.mark.parametrize("header", ["Bearer ost_wrong", "Bearer ", "Bearer", "ost_x", "Basic YTpi", "Bearer ost_\xe4"])
def test_what_is_not_a_token_does_not_get_in(web: Web, header: str) -> None:
    answer = web.anybody().get("/api/me", headers=[(b"authorization", header.encode("latin-1"))])
    assert answer.status_code == 401


def test_a_wrong_token_is_not_made_good_by_a_cookie(web: Web) -> None:
    browser = web.browser()
    assert browser.get("/api/me").status_code == 200
    assert browser.get("/api/me", headers={"Authorization": "Bearer ost_wrong"}).status_code == 401


def test_what_a_proxy_asks_for_itself_does_not_shut_out_the_cookie(web: Web) -> None:
    browser = web.browser()
    assert browser.get("/api/me", headers={"Authorization": "Basic YTpi"}).json()["who"] == "ada"
    assert web.anybody().get("/api/me", headers={"Authorization": "Basic YTpi"}).status_code == 401


def test_a_token_ends_when_it_expires_and_when_it_is_removed(web: Web) -> None:
    short = web.anybody(Authorization=f"Bearer {web.token('viewer', 'short', '1h')}")
    removed = web.script("viewer", "removed")
    assert (short.get("/api/me").status_code, removed.get("/api/me").status_code) == (200, 200)
    (id,) = [token.id for token in web.run(web.container.services.access.tokens()) if token.name == "removed"]
    assert web.script("admin").send("DELETE", f"/api/tokens/{id}").status_code == 204
    web.clock.advance("2h")
    assert (short.get("/api/me").status_code, removed.get("/api/me").status_code) == (401, 401)


def test_the_secret_of_a_token_is_shown_once_and_stored_as_its_hash(web: Web) -> None:
    admin = web.script("admin")
    made = admin.post("/api/tokens", {"name": "ci", "role": "operator", "expires": "90d"})
    assert made.status_code == 201
    secret = made.json()["token"]
    assert secret.startswith("ost_")
    assert secret not in admin.get("/api/tokens").text
    dump = _rows(web)
    assert secret not in dump
    assert hashlib.sha256(secret.encode()).hexdigest() in dump
    listed = next(token for token in admin.get("/api/tokens").json()["items"] if token["name"] == "ci")
    assert listed["owner"] == "admin"
    assert listed["expires_at"] == "2026-04-01T00:00:00Z"
    assert listed["used_at"] is None
    web.anybody(Authorization=f"Bearer {secret}").get("/api/me")
    listed = next(token for token in admin.get("/api/tokens").json()["items"] if token["name"] == "ci")
    assert listed["used_at"] == "2026-01-01T00:00:00Z"


def _rows(web: Web) -> str:
    """Everything that the database holds of tokens and logins."""
    tables = [name for (name,) in web.sql("SELECT name FROM sqlite_master WHERE type='table'")]
    kept = [name for name in tables if any(word in name for word in ("token", "login", "code", "audit"))]
    assert kept
    return "".join(str(web.sql(f"SELECT * FROM {table}")) for table in kept)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"name": "", "role": "viewer"}, "name"),
        ({"name": " ci", "role": "viewer"}, "name"),
        ({"name": "ci", "role": "god"}, "role"),
        ({"name": "ci"}, "role"),
        ({"name": "ci", "role": "viewer", "expires": "soon"}, "expires"),
        ({"name": "ci", "role": "viewer", "expires": "0s"}, "expires"),
        ({"name": "ci", "role": "viewer", "expires": "999999d"}, None),
        ({"name": "ci", "role": "viewer", "expires": "99999999d"}, "expires"),
        ({"name": "ci", "role": "viewer", "admin": True}, "admin"),
    ],
)
def test_a_token_that_cannot_be_is_told_by_its_field(web: Web, body: dict[str, object], field: str | None) -> None:
    answer = web.script("admin").post("/api/tokens", body)
    if field is None:
        assert answer.status_code == 201
        return
    assert answer.status_code == 422
    assert [error["field"] for error in answer.json()["errors"]] == [field]


def test_two_tokens_cannot_have_one_name(web: Web) -> None:
    admin = web.script("admin")
    assert _problem(admin, "POST", "/api/tokens", json={"name": "admin", "role": "viewer"}) == (
        409,
        "/problems/conflict",
    )
    assert _problem(admin, "DELETE", "/api/tokens/99") == (404, "/problems/not-found")


def test_a_login_link_works_once(web: Web) -> None:
    code = web.run(web.container.services.access.make_code(who="ada"))
    first = web.anybody()
    answer = first.log_in(code=code)
    assert (answer.json()["who"], answer.json()["role"]) == ("ada", "admin")
    cookie = answer.headers["set-cookie"]
    for part in ("HttpOnly", "SameSite=strict", "Path=/", "Max-Age=2592000"):
        assert part in cookie
    assert "Secure" not in cookie
    me = first.get("/api/me").json()
    assert {**me, "origin_key": first.origin_key} == answer.json()
    assert _problem(web.anybody(), "POST", "/api/login", json={"code": code}) == (401, "/problems/not-logged-in")


def test_a_login_link_works_for_fifteen_minutes(web: Web) -> None:
    code = web.run(web.container.services.access.make_code(who="ada"))
    web.clock.advance("15m")
    assert web.anybody().post("/api/login", {"code": code}).status_code == 401


def test_behind_a_proxy_with_tls_the_cookie_is_for_tls_only(web: Web) -> None:
    web.set(hosts=("jobs.example.org",))
    code = web.run(web.container.services.access.make_code(who="ada"))
    headers = {"Host": "jobs.example.org", "Origin": "https://jobs.example.org"}
    answer = web.anybody().post("/api/login", {"code": code}, headers=headers)
    assert "Secure" in answer.headers["set-cookie"]


@pytest.mark.parametrize("body", [{}, {"code": "a", "token": "b"}, {"code": None}])
def test_a_login_takes_either_a_code_or_a_token(web: Web, body: dict[str, object]) -> None:
    assert web.anybody().post("/api/login", body).status_code == 422


def test_a_login_with_a_token_has_its_role_and_ends_with_it(web: Web) -> None:
    secret = web.token("operator", "desk")
    browser = web.anybody()
    answer = browser.log_in(token=secret)
    assert (answer.json()["who"], answer.json()["role"]) == ("desk", "operator")
    assert browser.get("/api/me").status_code == 200
    (id,) = [token.id for token in web.run(web.container.services.access.tokens())]
    web.run(web.container.services.access.remove_token(id))
    assert browser.get("/api/me").status_code == 401


def test_a_token_that_is_removed_while_somebody_logs_in_with_it_lets_nobody_in(
    web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = web.token("operator", "desk")
    store = web.container.store.access
    find = store.find_token

    async def find_and_lose(hash: str, now: Micros) -> Token | None:
        found = await find(hash, now)
        assert found is not None
        await store.remove_token(found.id)
        return found

    monkeypatch.setattr(store, "find_token", find_and_lose)
    answer = web.anybody().post("/api/login", {"token": secret})
    assert (answer.status_code, answer.headers.get("set-cookie")) == (401, None)
    assert [entry for entry in web.audit() if entry[2] == "login"] == []


@pytest.mark.parametrize("who", ["script", "browser"])
def test_on_a_full_disk_everything_can_be_read(web: Web, monkeypatch: pytest.MonkeyPatch, who: str) -> None:
    reader = web.script("viewer") if who == "script" else web.browser()
    assert reader.get("/api/me").status_code == 200
    web.clock.advance("2m")

    async def full(*_: object, **__: object) -> None:
        raise StoreUnavailable("the disk is full")

    monkeypatch.setattr(web.container.store.access._database, "write", full)  # type: ignore[attr-defined]
    assert [reader.get(path).status_code for path in ("/api/me", "/api/schedules", "/api/runs")] == [200, 200, 200]


def test_a_login_with_a_token_does_not_outlive_it(web: Web) -> None:
    secret = web.token("operator", "desk", "1d")
    browser = web.anybody()
    browser.log_in(token=secret)
    assert browser.get("/api/me").status_code == 200
    web.clock.advance("25h")
    assert browser.get("/api/me").status_code == 401


def test_a_login_lasts_thirty_days_and_seven_without_use(web: Web) -> None:
    browser, idle = web.browser(), web.browser()
    for _ in range(4):
        web.clock.advance("6d")
        assert browser.get("/api/me").status_code == 200
    assert idle.get("/api/me").status_code == 401
    web.clock.advance("6d")
    assert browser.get("/api/me").status_code == 401


def test_how_long_a_login_lasts_is_a_setting(url: str) -> None:
    hours, minutes = timedelta(hours=2), timedelta(minutes=30)
    with web_on(url=url, login_lifetime=hours, login_idle_timeout=minutes) as web:
        code = web.run(web.container.services.access.make_code(who="ada"))
        browser, idle = web.anybody(), web.browser(who="bob")
        assert "Max-Age=7200" in browser.log_in(code=code).headers["set-cookie"]
        for _ in range(5):
            web.clock.advance("20m")
            assert browser.get("/api/me").status_code == 200
        assert idle.get("/api/me").status_code == 401
        listed = browser.get("/api/logins").json()["items"]
        assert [(one["who"], one["expires_at"]) for one in listed] == [("ada", "2026-01-01T02:00:00Z")]
        web.clock.advance("20m")
        assert browser.get("/api/me").status_code == 401
        assert not web.run(web.container.services.access.has_logins())


def test_after_a_logout_the_cookie_is_worthless(web: Web) -> None:
    browser = web.browser()
    both = {"Cookie": f"ostinato-8321={browser.cookies['ostinato-8321']}", "X-Origin-Key": browser.origin_key}
    assert web.anybody(**both).get("/api/me").status_code == 200
    assert browser.post("/api/logout").status_code == 204
    assert not browser.cookies
    assert web.anybody(**both).get("/api/me").status_code == 401


def test_a_login_at_another_port_of_the_host_leaves_this_one(web: Web) -> None:
    """Browsers keep cookies by host and name alone."""
    browser = web.browser()
    key, before = browser.origin_key, dict(browser.cookies)
    other = "http://127.0.0.1:8322"
    answer = browser.post(f"{other}/api/login", {"token": web.token("viewer", "desk")}, headers={"Origin": other})
    assert answer.status_code == 200
    assert browser.get("/api/me", headers={"X-Origin-Key": key}).json()["who"] == "ada"
    assert set(browser.cookies) - set(before) == {"ostinato-8322"}


def test_an_admin_sees_who_is_logged_in_and_logs_them_out(web: Web) -> None:
    lost, kept = web.browser(who="bob"), web.browser(who="cy")
    admin = web.script("admin")
    web.anybody().post("/api/login", {"token": web.token("viewer", "desk")})
    listed = admin.get("/api/logins").json()["items"]
    assert [(one["who"], one["role"], one["token"]) for one in listed] == [
        ("desk", "viewer", "desk"),
        ("cy", "admin", None),
        ("bob", "admin", None),
    ]
    assert listed[2] == {
        "id": listed[2]["id"],
        "who": "bob",
        "role": "admin",
        "token": None,
        "created_at": "2026-01-01T00:00:00Z",
        "used_at": None,
        "expires_at": "2026-01-31T00:00:00Z",
        "current": False,
    }
    assert [one["current"] for one in kept.get("/api/logins").json()["items"]] == [False, True, False]
    path = f"/api/logins/{listed[2]['id']}"
    assert [admin.send("DELETE", path).status_code for _ in range(2)] == [204, 404]
    assert (lost.get("/api/me").status_code, kept.get("/api/me").status_code) == (401, 200)
    assert web.audit()[-1] == ("admin", "api", "logout", "bob")


def test_a_logout_is_noted_and_the_secret_is_not(web: Web) -> None:
    browser = web.browser(who="bob")
    secrets = browser.cookies["ostinato-8321"], browser.origin_key
    stored = _rows(web)
    browser.post("/api/logout")
    web.script("viewer").post("/api/logout")
    assert [entry for entry in web.audit() if entry[2] == "logout"] == [("bob", "page", "logout", "bob")]
    for secret in secrets:
        assert secret not in stored + _rows(web)
        assert hashlib.sha256(secret.encode()).hexdigest() in stored


def test_the_cookie_alone_neither_reads_nor_writes_nor_gives_the_key(web: Web) -> None:
    """Browsers send it to every port of the host: whoever listens at another one has it."""
    browser, other = web.browser(), web.browser(who="bob")
    cookie = f"ostinato-8321={browser.cookies['ostinato-8321']}"
    for key in ({}, {"X-Origin-Key": ""}, {"X-Origin-Key": other.origin_key}, {"X-Origin-Key": "\xe4" * 43}):
        thief = web.anybody(Cookie=cookie)
        raw = [(name.encode(), value.encode("latin-1")) for name, value in key.items()]
        for method, path, body in (
            ("GET", "/api/me", None),
            ("GET", "/api/runs", None),
            ("POST", "/api/tokens", {"name": "ci", "role": "admin"}),
            ("POST", "/api/logout", None),
        ):
            answer = thief.send(method, path, json=body, headers=raw)
            assert (answer.status_code, browser.origin_key in answer.text) == (401, False)
        assert thief.post("/api/login", {}, headers=raw).status_code == 422
    assert browser.origin_key not in browser.get("/api/me").text + browser.get("/api/logins").text
    assert browser.post("/api/tokens", {"name": "ci", "role": "viewer"}).status_code == 201


def test_ten_wrong_codes_in_a_minute_are_enough_from_one_address(web: Web) -> None:
    guesser = web.anybody("192.0.2.7")
    for _ in range(10):
        assert guesser.post("/api/login", {"code": "wrong"}).status_code == 401
    answer = guesser.post("/api/login", {"code": "wrong"})
    assert answer.status_code == 429
    assert answer.headers["retry-after"] == "60"
    assert answer.json()["type"] == "/problems/too-many-attempts"
    assert guesser.get("/api/me", headers={"Authorization": "Bearer ost_wrong"}).status_code == 429
    web.clock.advance("59s")
    assert guesser.post("/api/login", {"code": "wrong"}).headers["retry-after"] == "1"
    web.clock.advance("1s")
    assert guesser.post("/api/login", {"code": "wrong"}).status_code == 401


def test_a_token_that_holds_is_let_in_whoever_else_guesses_from_there(web: Web) -> None:
    script = web.script("viewer")
    wrong = {"Authorization": "Bearer ost_wrong"}
    answers = [web.anybody().get("/api/me", headers=wrong).status_code for _ in range(12)]
    assert answers == [401] * 10 + [429] * 2
    assert script.get("/api/me").status_code == 200


def test_a_code_or_token_that_holds_logs_in_whoever_else_guesses_from_there(web: Web) -> None:
    code, token = web.run(web.container.services.access.make_code(who="ada")), web.token("viewer")
    wrong = {"Authorization": "Bearer ost_expired"}
    assert [web.anybody().get("/api/me", headers=wrong).status_code for _ in range(12)][-1] == 429
    assert web.anybody().post("/api/login", {"code": "wrong"}).status_code == 429
    assert web.anybody().post("/api/login", {"token": token}).status_code == 200
    assert web.anybody().post("/api/login", {"code": code}).status_code == 200


def test_a_hundred_wrong_codes_in_a_minute_are_enough_from_everywhere(web: Web) -> None:
    for number in range(100):
        answer = web.anybody(f"192.0.2.{number}").post("/api/login", {"code": "wrong"})
        assert answer.status_code == 401
    assert web.anybody("198.51.100.1").post("/api/login", {"code": "wrong"}).status_code == 429
    web.clock.advance("60s")
    assert web.anybody("198.51.100.1").post("/api/login", {"code": "wrong"}).status_code == 401


def test_whether_somebody_can_get_in_is_known(web: Web) -> None:
    access = web.container.services.access
    assert not web.run(access.has_tokens())
    assert not web.run(access.has_logins())
    web.token("viewer", "short", "1h")
    web.browser()
    assert web.run(access.has_tokens())
    assert web.run(access.has_logins())
    web.clock.advance("31d")
    assert not web.run(access.has_tokens())
    assert not web.run(access.has_logins())


def test_a_cookie_without_its_key_is_told_which_header_is_missing(web: Web) -> None:
    browser = web.browser()
    cookie = {"Cookie": f"ostinato-8321={browser.cookies['ostinato-8321']}"}
    answer = web.anybody(**cookie).get("/api/me")
    assert answer.status_code == 401
    assert "the header X-Origin-Key" in answer.json()["detail"]
    for unknown in (web.anybody(), web.anybody(**cookie, **{"X-Origin-Key": "wrong"})):
        assert "X-Origin-Key" not in unknown.get("/api/me").json()["detail"]
