"""Schedules that code declares, at the doors: what people changed of them, the way back, and their removal."""

from __future__ import annotations

from typing import Any

import pytest

from ostinato import Ostinato, ScheduleSpec
from ostinato.config import Settings
from tests.doors.command_line import CommandLine
from tests.doors.web import Client, Web


@pytest.fixture
def shop(cli: CommandLine) -> CommandLine:
    """A database whose schedule `cleanup` is declared by the app `shop`."""
    app = Ostinato(settings=Settings(db=f"sqlite:///{cli.folder}/ostinato.db"), name="shop")
    app.task("cleanup", schedule="every 1h", timeout="5m")(lambda: None)
    app.start().stop()
    return cli


def test_show_and_why_tell_what_a_person_changed_and_revert_gives_it_back(shop: CommandLine) -> None:
    shop.ok("schedule", "edit", "cleanup", "--timing", "every 2h", "--timeout", "9m")
    shown = shop.ok("schedule", "show", "cleanup").out
    assert "code of app shop" in shown
    assert "code says every 1h" in shown
    (timeout, timing) = shop.ok("schedule", "show", "cleanup", "--json").json["changes"]
    assert (timing["field"], timing["value"], timing["code"]) == ("timing", "every 2h (UTC)", "every 1h (UTC)")
    assert (timeout["field"], timeout["value"], timeout["code"]) == ("timeout", "9m", "5m")
    assert timing["by"] == timeout["by"]
    assert timing["by"] not in (None, "a program")
    assert any("timing by " in fact for fact in shop.ok("why", "cleanup", "--json").json["facts"])
    assert "as the code says" in shop.ok("schedule", "revert", "cleanup", "--field", "timing").err
    after = shop.ok("schedule", "show", "cleanup", "--json").json
    assert (after["timing"], [change["field"] for change in after["changes"]]) == ("every 1h", ["timeout"])
    assert shop.ok("schedule", "revert", "cleanup", "--json").json["changes"] == []
    assert "unchanged" in shop.ok("schedule", "revert", "cleanup").err
    assert shop("schedule", "revert", "cleanup", "--field", "moon").code == 2


def test_whoever_contradicts_the_code_is_told_so_at_that_moment(shop: CommandLine) -> None:
    back = "Yours stays until the code changes it; give it back with 'ostinato schedule revert cleanup'"
    edited = shop.ok("schedule", "edit", "cleanup", "every 2h").err
    assert f"code says timing every 1h (UTC). {back}" in edited
    added = shop.ok("schedule", "add", "cleanup", "every 2h", "--task", "cleanup", "--retry", "5", "--replace").err
    assert "code says retry max 3; timeout 5m. Yours stays" in added
    assert f"code says switched on. {back}" in shop.ok("schedule", "disable", "cleanup").err
    again = [shop.ok(*words).err for words in (["schedule", "disable", "cleanup"], ["schedule", "enable", "cleanup"])]
    assert "code says" not in "".join(again)
    assert shop.ok("why", "cleanup", "--json").json["facts"]


def test_the_audit_log_is_listed_at_the_command_line(shop: CommandLine) -> None:
    shop.ok("schedule", "edit", "cleanup", "every 2h", "--retry", "5")
    shop.ok("schedule", "revert", "cleanup")
    reverted, edited = shop.ok("audit", "ls", "--object", "cleanup", "--json").json
    assert (reverted["verb"], edited["verb"]) == ("schedule.revert", "schedule.edit")
    assert reverted["detail"] == {"fields": ["retry", "timing"]}
    assert (edited["door"], edited["detail"]["timing"]) == ("cli", "every 2h")
    shown = shop.ok("audit", "ls", "--verb", "schedule.edit", "--door", "cli").out
    assert "schedule.edit" in shown
    assert "schedule.revert" not in shown
    assert "nothing that was done matches" in shop.ok("audit", "ls", "--who", "nobody at all").err


def test_a_schedule_of_code_is_not_removed_without_force_and_rm_says_what_that_means(shop: CommandLine) -> None:
    refused = shop("schedule", "rm", "cleanup", "--yes")
    assert refused.code == 1
    assert "declared by the code of app 'shop'" in refused.err
    assert "Disable it instead, or remove it from the code; with --force it is removed until then" in refused.err
    removed = shop.ok("schedule", "rm", "cleanup", "--yes", "--force")
    assert "it comes back when app 'shop' starts the next time" in removed.err


def test_rm_of_a_schedule_that_no_code_declares_says_nothing_of_code(cli: CommandLine) -> None:
    cli.ok("schedule", "add", "mine", "every 1h", "--shell", "true")
    assert cli.ok("schedule", "rm", "mine", "--yes", "--json").json["comes_back"] is False


@pytest.fixture
def coded(web: Web, admin: Client) -> Client:
    """An admin, and a schedule `cleanup` whose timing and ping_url people changed."""
    spec = ScheduleSpec(
        "cleanup",
        "every 1h",
        "hello",
        owner="code",
        origin="shop",
        policy={"ping_url": "https://hc.example.org/secret"},
    )
    web.run(web.container.services.schedules.add_many([spec]))
    changes = {"timing": "every 2h", "policy": {"ping_url": "https://hc.example.org/other"}}
    assert admin.send("PATCH", "/api/schedules/cleanup", json=changes).status_code == 200
    return admin


def test_rest_tells_the_changes_without_secrets_and_reverts(coded: Client, operator: Client) -> None:
    found = coded.get("/api/schedules/cleanup").json()
    assert found["origin"] == "shop"
    assert "declared" not in found
    assert {change["field"]: (change["value"], change["code"]) for change in found["changes"]} == {
        "timing": ("every 2h (UTC)", "every 1h (UTC)"),
        "ping_url": ("***", "***"),
    }
    assert operator.post("/api/schedules/cleanup/revert", {}).status_code == 403
    back = operator.post("/api/schedules/cleanup/revert", {"fields": ["timing"]})
    assert (back.status_code, back.json()["timing"]) == (200, "every 1h")
    assert coded.post("/api/schedules/cleanup/revert", {"fields": ["moon"]}).status_code == 422
    assert coded.post("/api/schedules/cleanup/revert").json()["changes"] == []
    coded.post("/api/schedules", {"name": "mine", "timing": "every 1h", "work": {"kind": "function", "task": "hello"}})
    assert coded.post("/api/schedules/mine/revert").status_code == 409
    verbs = [entry["verb"] for entry in coded.get("/api/audit?object=cleanup").json()["items"]]
    assert verbs == ["schedule.revert", "schedule.revert", "schedule.edit"]


def test_rest_removes_a_schedule_of_code_only_by_force(coded: Client) -> None:
    refused = coded.send("DELETE", "/api/schedules/cleanup")
    assert (refused.status_code, "would come back" in refused.json()["detail"]) == (409, True)
    assert coded.send("DELETE", "/api/schedules/cleanup?force=true").status_code == 204


def test_a_post_of_its_name_is_a_change_by_a_person(coded: Client) -> None:
    again: dict[str, Any] = {"name": "cleanup", "timing": "every 3h", "work": {"kind": "function", "task": "hello"}}
    assert coded.post("/api/schedules", again).status_code == 409, "it is the code's"
    again["replace"] = True
    found = coded.post("/api/schedules", again).json()
    assert (found["owner"], found["timing"]) == ("code", "every 3h")
    assert {change["field"] for change in found["changes"]} == {"timing", "ping_url"}
