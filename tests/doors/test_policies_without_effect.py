"""Policies that would do nothing beside others are refused, in every door, and the error names both."""

from __future__ import annotations

from typing import Any

import pytest

from ostinato import Agent, InvalidInput, Ostinato, Shell
from tests.doors.command_line import CommandLine
from tests.doors.web import Client, Web

UNEVEN = {"soft_timeout": "5m", "timeout": "5m"}
UNEVEN_SAID = "soft_timeout 5m is not before timeout 5m"
IDLE_SAID = "without break_after they never do"


def test_a_probe_of_what_no_failure_switches_off_is_refused(app: Ostinato) -> None:
    app.task("job")(lambda: None)
    with pytest.raises(InvalidInput, match=IDLE_SAID) as caught:
        app.schedules.add("a", "every 5m", "job", probe="1h")
    assert (caught.value.field, caught.value.hint) == (
        "probe",
        "give break_after too, such as 3, or leave out probe (none)",
    )
    assert app.schedules.add("a", "every 5m", "job", probe="1h", break_after=3).policy.break_after == 3
    with pytest.raises(InvalidInput, match=IDLE_SAID):
        app.schedules.edit("a", break_after=None)
    assert app.schedules.edit("a", break_after=None, probe=None).policy.probe is None
    with pytest.raises(InvalidInput, match=IDLE_SAID):
        app.schedules.edit("a", probe="1h")


def test_work_with_a_breaker_of_its_own_may_be_probed_and_an_agent_always(app: Ostinato) -> None:
    assert app.schedules.add("shell", "every 5m", Shell("true"), probe="1h").policy.break_after == 3
    # One that is not logged in breaks its schedule whatever the number.
    assert app.schedules.add("agent", "every 5m", Agent("x"), probe="1h", break_after=None).policy.break_after is None
    app.task("job")(lambda: None)
    with pytest.raises(InvalidInput, match=IDLE_SAID):
        app.schedules.edit("shell", work="job")  # its breaker goes with the kind


def test_what_runs_after_others_has_no_time_for_a_probe(app: Ostinato) -> None:
    app.task("job")(lambda: None)
    app.schedules.add("import", "every 5m", "job")
    with pytest.raises(InvalidInput, match="runs after others has no time of its own") as caught:
        app.schedules.add("report", "after import", "job", break_after=3, probe="1h")
    assert caught.value.field == "probe"
    app.schedules.add("report", "every 5m", "job", break_after=3, probe="1h")
    with pytest.raises(InvalidInput, match="runs after others"):
        app.schedules.edit("report", timing="after import")


def test_a_soft_timeout_that_its_timeout_overtakes_is_refused(app: Ostinato) -> None:
    job: Any = app.task("job")(lambda: None)
    with pytest.raises(InvalidInput, match=UNEVEN_SAID) as caught:
        app.schedules.add("a", "every 5m", "job", **UNEVEN)  # type: ignore[arg-type]
    assert (caught.value.field, caught.value.hint) == (
        "soft_timeout",
        "give a shorter soft_timeout, or a longer timeout",
    )
    app.schedules.add("a", "every 5m", "job", soft_timeout="5m", timeout="6m")
    with pytest.raises(InvalidInput, match="soft_timeout 5m is not before timeout 4m"):
        app.schedules.edit("a", timeout="4m")
    with pytest.raises(InvalidInput, match=UNEVEN_SAID):
        job.using(**UNEVEN).enqueue()
    assert app.runs.list() == []


def test_a_decorator_refuses_them_where_they_are_written(app: Ostinato) -> None:
    with pytest.raises(InvalidInput, match=UNEVEN_SAID):
        app.task("job", **UNEVEN)(lambda: None)  # type: ignore[call-overload]
    with pytest.raises(InvalidInput, match=f"the schedule of task 'job' cannot be: .*{IDLE_SAID}"):
        app.task("job", schedule="every 5m", probe="1h")(lambda: None)
    with pytest.raises(InvalidInput, match=r"the schedule of task 'job' cannot be: .*runs after others"):
        app.task("job", after="import", break_after=3, probe="1h")(lambda: None)
    assert not app.registry.tasks
    # The schedules of a task that has none here may bring a breaker.
    app.task("job", probe="1h")(lambda: None)
    assert app.schedules.add("a", "every 5m", "job", break_after=3).policy.probe is not None


def test_a_stored_schedule_that_has_them_keeps_them_until_they_are_changed(web: Web, admin: Client) -> None:
    body = {"name": "a", "timing": "every 5m", "work": {"kind": "function", "task": "hello"}}
    admin.post("/api/schedules", body)
    web.sql("""UPDATE schedules SET policy = '{"probe":"1h","soft_timeout":"5m","timeout":"5m"}'""")

    def change(**changes: Any) -> Any:
        return admin.send("PATCH", "/api/schedules/a", json=changes)

    kept = change(note="why", policy={"priority": 3}).json()
    assert (kept["note"], kept["policy"]["probe"], kept["policy"]["soft_timeout"]) == ("why", "1h", "5m")
    assert "soft_timeout" in change(policy={"timeout": "4m"}).text
    assert "break_after" in change(policy={"probe": "2h"}).text
    assert change(policy={"timeout": None, "probe": None}).json()["policy"]["soft_timeout"] == "5m"


@pytest.mark.parametrize(("policy", "said"), [(UNEVEN, UNEVEN_SAID), ({"probe": "1h"}, IDLE_SAID)])
def test_rest_refuses_them_by_their_field(admin: Client, policy: dict[str, str], said: str) -> None:
    body = {"name": "a", "timing": "every 5m", "work": {"kind": "function", "task": "hello"}}
    answer = admin.post("/api/schedules", body | {"policy": policy})
    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    assert error["field"] == f"policy.{next(iter(policy))}"
    assert said in error["message"]
    assert admin.post("/api/schedules", body).status_code == 201
    assert admin.send("PATCH", "/api/schedules/a", json={"policy": policy}).status_code == 422


def test_the_command_line_refuses_them(cli: CommandLine) -> None:
    add = ("schedule", "add", "a", "every 5m", "--task", "hello")
    assert UNEVEN_SAID in cli(*add, "--soft-timeout", "5m", "--timeout", "5m").err
    assert IDLE_SAID in cli(*add, "--probe", "1h").err
    cli.ok(*add, "--probe", "1h", "--break-after", "3")
    assert IDLE_SAID in cli("schedule", "edit", "a", "--break-after", "none").err
