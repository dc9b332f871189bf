"""`ostinato token`, `ostinato login` and `ostinato logout`."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest

from tests.doors.command_line import CommandLine
from tests.doors.web import web_on


def test_a_token_is_made_listed_and_removed(cli: CommandLine) -> None:
    added = cli.ok("token", "add", "ci", "--role", "operator", "--expires", "90d")
    secret = added.out.strip()
    assert secret.startswith("ost_")
    assert "its secret is shown only this once" in added.err
    listed = cli.ok("token", "ls")
    for part in ("ci", "operator", "never", "in "):
        assert part in listed.out
    assert secret not in listed.out
    with web_on(url=f"sqlite:///{cli.folder / 'ostinato.db'}") as web:
        web.clock.move_to("2026-01-01T00:00:00Z")
        me = web.anybody(Authorization=f"Bearer {secret}").get("/api/me").json()
        assert (me["who"], me["role"]) == ("ci", "operator")
    assert "removed: token 'ci'" in cli.ok("token", "rm", "ci").err
    assert cli.ok("token", "ls", "--json").json == []
    with web_on(url=f"sqlite:///{cli.folder / 'ostinato.db'}") as web:
        assert web.anybody(Authorization=f"Bearer {secret}").get("/api/me").status_code == 401


def test_scripts_get_the_token_as_json(cli: CommandLine) -> None:
    made = cli.ok("token", "add", "ci", "--role", "viewer", "--json").json
    assert made["token"].startswith("ost_")
    (listed,) = cli.ok("token", "ls", "--json").json
    assert "token" not in listed
    assert listed == {name: value for name, value in made.items() if name != "token"}
    assert cli.ok("token", "rm", str(made["id"]), "--json").json == {"id": made["id"], "name": "ci", "removed": True}


def test_what_is_wrong_with_a_token_is_told(cli: CommandLine) -> None:
    cli.ok("token", "add", "ci", "--role", "viewer")
    taken = cli("token", "add", "ci", "--role", "viewer")
    assert (taken.code, "a token 'ci' already exists" in taken.err) == (1, True)
    role = cli("token", "add", "x", "--role", "god")
    assert (role.code, "viewer, operator, admin" in role.err) == (2, True)
    assert cli("token", "add", "x").code == 2
    assert cli("token", "add", "x", "--role", "viewer", "--expires", "soon").code == 2
    ghost = cli("token", "rm", "ghost")
    assert (ghost.code, "'ostinato token ls' lists them" in ghost.err) == (3, True)


def test_without_tokens_the_list_says_how_to_make_one(cli: CommandLine) -> None:
    assert "ostinato token add NAME --role viewer" in cli.ok("token", "ls").err


def test_a_login_link_is_for_the_host_and_port_of_the_settings(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OSTINATO_PORT", raising=False)
    assert cli.ok("login").out.startswith("http://127.0.0.1:8321/login?code=")
    monkeypatch.setenv("OSTINATO_PORT", "9000")
    monkeypatch.setenv("OSTINATO_HOST", "::1")
    assert cli.ok("login").out.startswith("http://[::1]:9000/login?code=")
    assert cli.ok("login", "--host", "0.0.0.0", "--port", "80").out.startswith("http://127.0.0.1:80/login?code=")
    unknown = cli("login", "--port", "0")
    assert (unknown.code, "give the port that the server printed" in unknown.err) == (2, True)


def test_a_login_link_logs_in_once_with_its_role(cli: CommandLine) -> None:
    answer = cli.ok("login", "--role", "viewer", "--who", "ada", "--port", "8321", "--json").json
    (code,) = parse_qs(urlsplit(answer["link"]).query)["code"]
    assert code == answer["code"]
    with web_on(url=f"sqlite:///{cli.folder / 'ostinato.db'}") as web:
        me = web.anybody().post("/api/login", {"code": code})
        assert (me.json()["who"], me.json()["role"]) == ("ada", "viewer")
        assert web.anybody().post("/api/login", {"code": code}).status_code == 401
    assert cli("login", "--role", "god", "--port", "8321").code == 2


def test_a_logout_ends_the_logins_of_somebody_and_their_links(cli: CommandLine) -> None:
    codes = {
        who: cli.ok("login", "--who", who, "--port", "8321", "--json").json["code"] for who in ("ada", "bob", "cy")
    }
    unused = cli.ok("login", "--who", "ada", "--port", "8321", "--json").json["code"]
    url = f"sqlite:///{cli.folder / 'ostinato.db'}"
    with web_on(url=url) as web:
        browsers = {who: web.anybody() for who in codes}
        for who, browser in browsers.items():
            browser.log_in(code=codes[who])

        def is_in(who: str) -> bool:
            return browsers[who].get("/api/me").status_code == 200

        assert "ended: 1 login of 'ada'" in cli.ok("logout", "ada").err
        assert [is_in(who) for who in browsers] == [False, True, True]
        assert web.anybody().post("/api/login", {"code": unused}).status_code == 401
        ghost = cli("logout", "ghost")
        assert (ghost.code, "'ghost' is not logged in" in ghost.err) == (3, True)
        assert cli.ok("logout", "all", "--json").json == {"who": "all", "ended": 2}
        assert [is_in(who) for who in browsers] == [False] * 3
        assert [(verb, object) for _, _, verb, object in web.audit() if verb == "logout"] == [
            ("logout", "ada"),
            ("logout", "ghost"),
            ("logout", "everybody"),
        ]
