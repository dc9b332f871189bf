"""The audit log: every write of people and agents, by whom and through which door, and never a secret."""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from ostinato import Agent, Http, Shell
from ostinato.errors import NotFound, StoreUnavailable
from ostinato.execution.registry import Registry
from ostinato.models.access import Actor
from ostinato.service.audit import acting, current_actor
from ostinato.stores.migrate import load_migrations
from tests.doors.command_line import CommandLine
from tests.doors.web import Web, web_on

ADA = Actor("ada", "api", "192.0.2.1")


@pytest.fixture
def web() -> Iterator[Web]:
    with web_on(Registry()) as web:
        yield web


def _details(web: Web) -> list[dict[str, Any]]:
    return [dict(entry.detail) for entry in reversed(web.run(web.container.services.audit.page()).items)]


def test_every_verb_of_the_services_is_noted_with_what_it_was_about(web: Web, tmp_path: Path) -> None:
    services = web.container.services

    async def do_everything() -> list[int]:
        await services.projects.add("blog", tmp_path)
        await services.schedules.add("nightly", "every 5m", "hello", project="blog")
        await services.schedules.edit("nightly", timing="every 10m")
        await services.schedules.disable("nightly", note="holidays")
        await services.schedules.enable("nightly")
        run = await services.schedules.trigger("nightly")
        queued = (await services.runs.enqueue_work("hello")).id
        await services.runs.cancel(queued, reason="too late")
        retried = await services.runs.retry(queued)
        await services.lanes.set("mail", 3)
        await services.lanes.pause("mail")
        await services.lanes.resume("mail")
        await services.lanes.clear("mail")
        await services.sessions.send("dm", "hello", task="hello")
        await services.sessions.stop("dm")
        await services.sessions.stop_all("dm")
        await services.schedules.remove("nightly")
        await services.projects.remove("blog")
        await services.access.make_token("ci", "viewer", "ada")
        (token,) = await services.access.tokens()
        await services.access.remove_token(token.id)
        return [run.id, queued, retried.id]

    triggered, queued, retried = _as_ada(web, do_everything())
    assert web.audit() == [
        ("ada", "api", verb, object)
        for verb, object in (
            ("project.add", "blog"),
            ("schedule.add", "nightly"),
            ("schedule.edit", "nightly"),
            ("schedule.disable", "nightly"),
            ("schedule.enable", "nightly"),
            ("schedule.trigger", "nightly"),
            ("run.enqueue", str(queued)),
            ("run.cancel", str(queued)),
            ("run.retry", str(queued)),
            ("lane.set", "mail"),
            ("lane.pause", "mail"),
            ("lane.resume", "mail"),
            ("lane.clear", "mail"),
            ("session.send", "dm"),
            ("session.stop", "dm"),
            ("session.stop_all", "dm"),
            ("schedule.remove", "nightly"),
            ("project.remove", "blog"),
            ("token.add", "ci"),
            ("token.remove", "ci"),
        )
    ]
    details = _details(web)
    assert details[1] == {"timing": "every 5m", "work": "hello", "project": "blog"}
    assert details[3] == {"note": "holidays"}
    assert details[5] == {"run": triggered}
    assert details[7] == {"reason": "too late"}
    assert details[8] == {"run": retried}
    assert details[12] == {"cleared": 0}


def _as_ada(web: Web, work: Any) -> Any:
    async def acted() -> Any:
        with acting(ADA):
            return await work

    return web.run(acted())


def test_code_that_calls_the_python_api_is_not_noted(web: Web) -> None:
    web.run(web.container.services.schedules.add("nightly", "every 5m", "hello"))
    assert web.audit() == []


def test_what_fails_is_not_noted(web: Web) -> None:
    with pytest.raises(NotFound):
        _as_ada(web, web.container.services.schedules.remove("ghost"))
    assert web.audit() == []


def test_a_try_of_a_backfill_is_not_noted(web: Web) -> None:
    services = web.container.services
    web.run(services.schedules.add("nightly", "every 1h", "hello"))
    web.clock.advance("3h")
    start, until = web.clock.now_utc().replace(hour=1), web.clock.now_utc()
    _as_ada(web, services.schedules.backfill("nightly", start, until, dry_run=True))
    assert web.audit() == []
    _as_ada(web, services.schedules.backfill("nightly", start, until))
    assert web.audit() == [("ada", "api", "schedule.backfill", "nightly")]


def test_who_acts_is_nobody_again_afterwards() -> None:
    assert current_actor() is None
    with acting(ADA):
        assert current_actor() == ADA
    assert current_actor() is None


def test_no_secret_is_in_the_log(web: Web, tmp_path: Path) -> None:
    services = web.container.services
    secret = "swordfish"

    async def write() -> None:
        await services.projects.add("blog", tmp_path, env={"PASSWORD": secret})
        await services.schedules.add("shell", "every 5m", Shell("make", env={"TOKEN": secret}))
        url = f"https://example.org/hook?key={secret}"
        await services.runs.enqueue_work(Http("POST", url, headers={"Authorization": secret}))
        await services.schedules.add("agent", "every 5m", Agent("x" * 5_000 + secret))
        await services.sessions.send("dm", {"text": "y" * 5_000 + secret}, task="hello")
        await services.runs.enqueue_work(Shell(["echo", *["z" * 150] * 500]))

    _as_ada(web, write())
    _, made = _as_ada(web, services.access.make_token("ci", "viewer", "ada"))
    written = json.dumps(_details(web))
    assert secret not in written
    assert made not in written
    details = _details(web)
    assert details[0]["env"] == ["PASSWORD"]
    assert details[1]["work"] == {"kind": "shell", "command": "make", "env": ["TOKEN"]}
    assert details[2]["work"]["url"] == "https://example.org/hook?…"
    assert details[2]["work"]["headers"] == ["Authorization"]
    assert details[3]["work"]["prompt"].startswith("x" * 200 + "… (sha256 ")
    assert all(len(json.dumps(detail)) < 5_000 for detail in details)


def test_a_log_that_cannot_be_written_does_not_undo_what_was_done(
    web: Web, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(*_: Any) -> None:
        raise StoreUnavailable("the disk is full")

    monkeypatch.setattr(web.container.store.access, "note_audit", broken)
    lane = _as_ada(web, web.container.services.lanes.set("mail", 3))
    assert lane.limit == 3
    assert "lane.set of 'mail' by ada (api)" in caplog.text


def test_a_long_command_is_known_by_its_beginning_and_its_hash(web: Web) -> None:
    text = "echo " + "x" * 5_000
    argv = ["sh", "-c", "y" * 5_000, *(f"argument {number}" for number in range(50))]
    shorter = ["restic", "backup", "/srv"]
    env = {f"{'N' * 180}{number}": "v" for number in range(30)}
    add = web.container.services.schedules.add
    for name, work in (("text", Shell(text, env=env)), ("argv", Shell(argv)), ("shorter", Shell(shorter))):
        _as_ada(web, add(name, "every 5m", work))
    commands = [detail["work"]["command"] for detail in _details(web)]
    assert commands[0] == f"{text[:200]}… (sha256 {sha256(text.encode()).hexdigest()})"
    whole = sha256(json.dumps(argv, separators=(",", ":")).encode()).hexdigest()
    assert (commands[1][:2], commands[1][-1]) == (["sh", "-c"], f"… (sha256 {whole})")
    assert commands[2] == shorter
    assert all(len(json.dumps(detail, ensure_ascii=False)) <= 4_500 for detail in _details(web))


def test_a_migration_by_hand_is_noted(cli: CommandLine) -> None:
    cli.ok("db", "migrate")
    cli.ok("db", "status")
    with web_on(url=f"sqlite:///{cli.folder / 'ostinato.db'}") as web:
        (entry,) = web.audit()
        assert entry[1:] == ("cli", "db.migrate", f"version {len(load_migrations('ostinato.stores.sqlite'))}")


def test_doors_and_addresses_are_told_apart(web: Web) -> None:
    code = web.run(web.container.services.access.make_code(who="bob"))
    browser = web.anybody("192.0.2.9")
    browser.log_in(code=code)
    browser.send("PUT", "/api/lanes/main", json={"limit": 7})
    script = web.script("operator", "ci")
    script.send("PUT", "/api/lanes/main", json={"limit": 8})
    assert script.send("PUT", "/api/lanes/main", json={"limit": 0}).status_code == 422
    items = web.script("admin").get("/api/audit").json()["items"]
    assert [(item["who"], item["door"], item["address"], item["verb"]) for item in items] == [
        ("ci", "api", "127.0.0.1", "lane.set"),
        ("bob", "page", "192.0.2.9", "lane.set"),
        ("bob", "page", "192.0.2.9", "login"),
    ]
    assert items[0]["detail"] == {"limit": 8}
    assert items[2]["detail"] == {"by": "code", "role": "admin"}


def test_the_log_is_read_in_pages_and_by_filters(web: Web) -> None:
    admin = web.script("admin")
    for limit in range(1, 8):
        admin.send("PUT", f"/api/lanes/lane{limit}", json={"limit": limit})
        web.clock.advance("1m")
    first = admin.get("/api/audit", params={"limit": 3}).json()
    second = admin.get("/api/audit", params={"limit": 3, "cursor": first["next"]}).json()
    third = admin.get("/api/audit", params={"limit": 3, "cursor": second["next"]}).json()
    objects = [item["object"] for page in (first, second, third) for item in page["items"]]
    assert objects == [f"lane{number}" for number in range(7, 0, -1)]
    assert third["next"] is None

    def found(**filters: str) -> list[str]:
        return [item["object"] for item in admin.get("/api/audit", params=filters).json()["items"]]

    assert found(object="lane3") == ["lane3"]
    assert found(verb="lane.pause") == []
    assert len(found(verb="lane.set", who="admin", door="api")) == 7
    assert found(who="nobody") == []
    span = {"from": "2026-01-01T00:02:00Z", "until": "2026-01-01T00:04:00Z"}
    assert set(found(**span)) >= {"lane3", "lane4"}
    assert "lane6" not in found(**span)


def test_a_page_of_the_log_has_fifty_entries_and_its_cursor_is_for_the_same_filter(web: Web) -> None:
    admin = web.script("admin")
    for _ in range(51):
        admin.send("PUT", "/api/lanes/main", json={"limit": 5})
    page = admin.get("/api/audit").json()
    assert len(page["items"]) == 50
    assert len(admin.get("/api/audit", params={"cursor": page["next"]}).json()["items"]) == 1
    other = admin.get("/api/audit", params={"cursor": page["next"], "who": "admin"})
    assert (other.status_code, other.json()["errors"][0]["field"]) == (422, "cursor")


@pytest.mark.parametrize(
    "query",
    [
        "cursor=x",
        "cursor=-1",
        "cursor=7",
        "limit=0",
        "limit=501",
        "from=yesterday",
        "from=1700000000",
        "until=2026-01-01T00:00:00",
        "whom=ada",
    ],
)
def test_a_wrong_question_to_the_log_is_told_so(web: Web, query: str) -> None:
    answer = web.script("admin").get(f"/api/audit?{query}")
    assert answer.status_code == 422
    assert [error["field"] for error in answer.json()["errors"]] == [query.split("=")[0]]


def test_what_is_done_at_the_command_line_is_noted_with_the_user_of_the_system(cli: CommandLine) -> None:
    import os
    import pwd

    cli.ok("schedule", "add", "nightly", "every 5m", "--shell", "true")
    cli.ok("schedule", "disable", "nightly", "--note", "holidays")
    cli.ok("exec", "--shell", "true")
    cli.ok("schedule", "ls")
    cli.ok("db", "prune")
    with web_on(url=f"sqlite:///{cli.folder / 'ostinato.db'}") as web:
        me = pwd.getpwuid(os.getuid()).pw_name
        assert web.audit() == [
            (me, "cli", "schedule.add", "nightly"),
            (me, "cli", "schedule.disable", "nightly"),
            (me, "cli", "run.exec", "shell"),
            (me, "cli", "db.prune", "database"),
        ]
        assert _details(web)[1] == {"note": "holidays", "keep_retries": False}
        assert _details(web)[3] == {"removed": 0}


def test_what_work_does_is_done_by_code_and_not_noted(cli: CommandLine) -> None:
    (cli.folder / "chain.py").write_text(
        "from ostinato import Ostinato\napp = Ostinato()\n"
        '@app.task("chain")\ndef chain():\n    app.schedules.add("made", "every 5m", "chain")\n',
        encoding="utf-8",
    )
    cli.ok("exec", "--app", "chain:app", "--task", "chain")
    assert cli.ok("schedule", "show", "made", "--json").json["owner"] == "user"
    with web_on(url=f"sqlite:///{cli.folder / 'ostinato.db'}") as web:
        assert [verb for _, _, verb, _ in web.audit()] == ["run.exec"]


def test_the_version_that_a_change_was_made_on_is_no_change(web: Web) -> None:
    admin = web.script("admin")
    admin.post("/api/schedules", {"name": "a", "timing": "every 5m", "work": {"kind": "function", "task": "hello"}})
    tag = {"If-Match": admin.get("/api/schedules/a").headers["etag"]}
    assert admin.send("PATCH", "/api/schedules/a", json={"timing": "every 10m"}, headers=tag).status_code == 200
    assert _details(web)[-1] == {"timing": "every 10m"}
