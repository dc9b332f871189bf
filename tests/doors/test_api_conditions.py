"""If-Match and If-None-Match: what was asked for a version is done for that version alone, whoever writes meanwhile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ostinato.clock import Micros
from ostinato.execution.registry import Registry
from ostinato.models.schedule import ScheduleDraft
from ostinato.stores.base import Removed
from tests.doors.web import Client, Web, web_on

TASK = {"kind": "function", "task": "hello"}
SHELL = {"kind": "shell", "command": "true"}
ONLY_NEW = {"If-None-Match": "*"}


@pytest.fixture
def web(url: str) -> Iterator[Web]:
    registry = Registry()
    registry.checks["disk"] = lambda: "the disk is full"
    with web_on(registry, url) as web:
        yield web


def body(timing: str = "every 5m", **fields: Any) -> dict[str, Any]:
    return {"name": "a", "timing": timing, "work": TASK, **fields}


def add(client: Client, **fields: Any) -> None:
    assert client.post("/api/schedules", body(**fields)).status_code == 201


def seen(client: Client) -> dict[str, str]:
    """The condition that it still is as it is now."""
    return {"If-Match": client.get("/api/schedules/a").headers["etag"]}


def meanwhile(web: Web, monkeypatch: pytest.MonkeyPatch, verb: str, change: dict[str, Any], *, before: bool) -> None:
    """Let somebody else edit the schedule once, just before or just after the store is asked for this."""
    schedules = web.container.services.schedules
    plain, left = getattr(web.container.store.schedules, verb), [change]

    async def overtaken(draft: ScheduleDraft, *rest: Micros) -> Any:
        fields = left.pop() if left else None
        answer = None if before else await plain(draft, *rest)
        if fields is not None:
            await schedules.add(draft.name, **fields, replace=True)
        return await plain(draft, *rest) if before else answer

    monkeypatch.setattr(web.container.store.schedules, verb, overtaken)


def test_of_those_who_add_one_name_at_the_same_time_one_does(admin: Client) -> None:
    requests = [
        ("POST", "/api/schedules", {"json": body(f"every {number}m"), "headers": ONLY_NEW}) for number in range(5, 11)
    ]
    answers = admin.send_together(*requests)
    assert Counter(answer.status_code for answer in answers) == {201: 1, 412: 5}
    (made,) = (answer.json() for answer in answers if answer.status_code == 201)
    assert {answer.json()["version"] for answer in answers if answer.status_code == 412} == {1}
    found = admin.get("/api/schedules/a").json()
    assert (found["timing"], found["version"]) == (made["timing"], 1)


def test_of_those_who_put_one_name_at_the_same_time_one_made_it(admin: Client) -> None:
    answers = admin.send_together(*[("POST", "/api/schedules", {"json": body()}) for _ in range(4)])
    assert Counter(answer.status_code for answer in answers) == {201: 1, 200: 3}
    assert sum("location" in answer.headers for answer in answers) == 1


def test_of_those_who_add_one_project_at_the_same_time_one_made_it(admin: Client, tmp_path: Path) -> None:
    project = {"name": "blog", "folder": str(tmp_path)}
    answers = admin.send_together(*[("POST", "/api/projects", {"json": project}) for _ in range(4)])
    assert Counter(answer.status_code for answer in answers) == {201: 1, 200: 3}


def test_a_new_schedule_that_is_off_is_not_due(admin: Client) -> None:
    answer = admin.post("/api/schedules", body(enabled=False), headers=ONLY_NEW)
    assert (answer.status_code, answer.json()["enabled"], answer.json()["next_run_at"]) == (201, False, None)


def test_only_a_star_can_be_asked_for_where_there_must_be_none(admin: Client) -> None:
    answer = admin.post("/api/schedules", body(), headers={"If-None-Match": '"3"'})
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "if-none-match")


def test_an_operator_does_not_replace_what_an_admin_made_meanwhile(
    web: Web, admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator = web.script("operator")
    made = {"timing": "every 5m", "work": "hello", "gate": "./any"}
    meanwhile(web, monkeypatch, "insert_schedule", made, before=True)
    assert operator.post("/api/schedules", body("every 9m")).status_code == 403
    assert admin.get("/api/schedules/a").json()["timing"] == "every 5m"


def test_an_operator_does_not_change_what_became_an_admins_meanwhile(
    web: Web, admin: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin.post("/api/projects", {"name": "blog", "folder": str(tmp_path)})
    add(admin)
    operator = web.script("operator")
    meanwhile(web, monkeypatch, "edit_schedule", {"timing": "every 5m", "work": "hello", "gate": "./any"}, before=True)
    assert operator.send("PATCH", "/api/schedules/a", json={"project": "blog"}).status_code == 403
    assert admin.get("/api/schedules/a").json()["project"] is None


def test_a_change_that_meets_another_one_is_done_on_top_of_it(
    web: Web, admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(admin)
    operator = web.script("operator")
    meanwhile(web, monkeypatch, "edit_schedule", {"timing": "every 7m", "work": "hello"}, before=True)
    answer = operator.send("PATCH", "/api/schedules/a", json={"note": "mine"})
    assert (answer.status_code, answer.json()["timing"], answer.json()["note"]) == (200, "every 7m", "mine")


def test_a_switch_is_not_thrown_on_what_somebody_changed_after_the_rest_of_the_change(
    web: Web, admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(admin)
    meanwhile(web, monkeypatch, "edit_schedule", {"timing": "every 7m", "work": "hello"}, before=False)
    changes = {"enabled": False, "note": "mine"}
    answer = admin.send("PATCH", "/api/schedules/a", json=changes, headers=seen(admin))
    assert (answer.status_code, answer.json()["version"]) == (412, 3)
    found = admin.get("/api/schedules/a").json()
    assert (found["enabled"], found["timing"], found["note"]) == (True, "every 7m", "mine")


def test_a_change_whose_switch_is_refused_changes_nothing(admin: Client) -> None:
    add(admin, enabled=False)
    changes = {"enabled": True, "timing": "every 7m", "policy": {"checks": ["disk"]}}
    answer = admin.send("PATCH", "/api/schedules/a", json=changes)
    assert (answer.status_code, answer.json()["checks"]) == (409, {"disk": "the disk is full"})
    found = admin.get("/api/schedules/a").json()
    assert (found["timing"], found["policy"]["checks"], found["version"]) == ("every 5m", [], 1)


def test_a_schedule_that_is_finished_is_not_changed_and_switched_on(web: Web, admin: Client) -> None:
    add(admin, timing="at 2026-01-01T01:00:00Z", enabled=False)
    web.clock.advance("2h")
    answer = admin.send("PATCH", "/api/schedules/a", json={"enabled": True, "note": "again"})
    assert (answer.status_code, "finished" in answer.json()["detail"]) == (409, True)
    assert admin.get("/api/schedules/a").json()["note"] is None
    answer = admin.send("PATCH", "/api/schedules/a", json={"enabled": True, "timing": "every 1h"})
    assert (answer.status_code, answer.json()["enabled"]) == (200, True)


SPAN = {"from": "2026-01-01T00:00:00Z", "until": "2026-01-01T00:00:00Z"}


EVERY_VERB = pytest.mark.parametrize(
    ("method", "path", "sent", "status"),
    [
        ("POST", "/api/schedules/a/enable", None, 200),
        ("POST", "/api/schedules/a/disable", {}, 200),
        ("POST", "/api/schedules/a/trigger", {}, 201),
        ("POST", "/api/schedules/a/backfill", SPAN, 201),
        ("PATCH", "/api/schedules/a", {}, 200),
        ("PATCH", "/api/schedules/a", {"enabled": False}, 200),
        ("DELETE", "/api/schedules/a", None, 204),
    ],
)


@EVERY_VERB
def test_every_verb_on_a_schedule_asks_for_the_version(
    admin: Client, method: str, path: str, sent: Any, status: int
) -> None:
    add(admin)
    first = seen(admin)
    admin.send("PATCH", "/api/schedules/a", json={"note": "changed"})
    old = admin.send(method, path, json=sent, headers=first)
    assert (old.status_code, old.json()["version"]) == (412, 2)
    assert admin.get("/api/schedules/a").json()["version"] == 2
    assert admin.get("/api/runs").json()["items"] == []
    assert admin.send(method, path, json=sent, headers=seen(admin)).status_code == status


def test_what_was_changed_after_it_was_looked_at_is_not_removed(
    web: Web, admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(admin)
    plain = web.container.store.schedules.remove_schedule

    async def overtaken(id: Any, now: int, version: int | None, spared: Any) -> Removed | None:
        await web.container.services.schedules.edit("a", note="wait")
        return await plain(id, now, version, spared)

    monkeypatch.setattr(web.container.store.schedules, "remove_schedule", overtaken)
    answer = admin.send("DELETE", "/api/schedules/a", headers=seen(admin))
    assert (answer.status_code, answer.json()["version"]) == (412, 2)
    assert admin.send("DELETE", "/api/schedules/a").status_code == 204


@EVERY_VERB
def test_no_verb_takes_a_schedule_that_was_removed_and_added_again_for_the_one_before(
    admin: Client, method: str, path: str, sent: Any, status: int
) -> None:
    add(admin)
    first = seen(admin)
    admin.send("DELETE", "/api/schedules/a")
    add(admin, work=SHELL)
    old = admin.send(method, path, json=sent, headers=first)
    assert (old.status_code, old.json()["version"]) == (412, 1)
    found = admin.get("/api/schedules/a").json()
    assert (found["work"]["kind"], found["enabled"], found["version"]) == ("shell", True, 1)
    assert admin.get("/api/runs").json()["items"] == []
    assert admin.send(method, path, json=sent, headers=seen(admin)).status_code == status


@pytest.mark.parametrize(
    ("method", "path", "sent"),
    [
        ("PATCH", "/api/schedules/a", {"policy": {"budget": {"per_day_runs": 3}}}),
        ("POST", "/api/schedules", body("every 9m", replace=True)),
    ],
)
def test_an_operator_does_not_change_what_an_admin_removed_and_added_again_meanwhile(
    web: Web, admin: Client, monkeypatch: pytest.MonkeyPatch, method: str, path: str, sent: Any
) -> None:
    add(admin)
    operator = web.script("operator")
    schedules, store = web.container.services.schedules, web.container.store.schedules
    plain, left = store.edit_schedule, ["once"]

    async def overtaken(draft: ScheduleDraft, *rest: Any) -> int | None:
        if left:
            left.pop()
            await schedules.remove("a")
            await schedules.add("a", "every 5m", "hello", gate="./any")
        return await plain(draft, *rest)

    monkeypatch.setattr(store, "edit_schedule", overtaken)
    assert operator.send(method, path, json=sent).status_code == 403
    found = admin.get("/api/schedules/a").json()
    assert (found["timing"], found["policy"]["gate"]["command"], found["version"]) == ("every 5m", "./any", 1)
