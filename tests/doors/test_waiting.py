"""What holds up a run or a schedule, as it is told: the same sentence by REST, in `show`, in why and in Python."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import Any

import pytest

from ostinato import Ostinato
from ostinato.cli import open_database
from ostinato.cli.console import as_typed, name_database
from ostinato.engine.plan import plan_fires
from ostinato.models.blocking import BlockedCause, Link
from ostinato.models.ids import NodeId
from ostinato.stores.base import Claim
from ostinato.testing import drain
from tests.doors.command_line import CommandLine
from tests.doors.web import Client, Web
from tests.stores.places import raw

TASK = {"kind": "function", "task": "hello"}
MINUTE = 60_000_000
NO_ENGINE = "no engine is running"
SINCE = "2026-01-01 00:00:00 UTC"


def claim(web: Web, room: int = 4) -> list[int]:
    """The node takes what it can."""
    now = web.clock.now()
    found = web.run(web.container.store.runs.claim_runs(Claim(NodeId("one"), now, now, room, ("hello",), '["hello"]')))
    return [run.id for run in found.runs]


def enqueue(client: Client, **fields: Any) -> int:
    answer = client.post("/api/runs", {"work": TASK, **fields})
    assert answer.status_code == 201, answer.text
    return int(answer.json()["id"])


def schedule(client: Client, name: str, timing: str, **policy: Any) -> None:
    answer = client.post("/api/schedules", {"name": name, "timing": timing, "work": TASK, "policy": policy})
    assert answer.status_code == 201, answer.text


def tick(web: Web, ahead: int = 0) -> None:
    """What an engine records of what is due, or soon will be."""
    schedules, now = web.container.store.schedules, web.clock.now()
    due = web.run(schedules.due_schedules(now + ahead, 10)).schedules
    plans = [plan_fires(one, now + ahead, grace=MINUTE, random=lambda: 0) for one in due]
    web.run(schedules.record_fires([plan for plan in plans if plan is not None], now))


def reason(client: Client, id: int) -> str | None:
    run = client.get(f"/api/runs/{id}").json()
    found: str | None = run["reason"]
    blocked = run["blocked_by"]
    assert blocked is None or blocked["sentence"] == found
    return found


def test_a_queued_run_says_what_it_waits_for_and_that_changes_with_the_cause(web: Web, admin: Client) -> None:
    id = enqueue(admin)
    assert reason(admin, id) == NO_ENGINE
    web.beat(tasks=("other",))
    assert reason(admin, id) == "task 'hello' is not registered on any running node"
    web.beat(tasks=("hello",), running=4)
    assert reason(admin, id) == "the slots of node one are full: 4 of 4 under way"
    admin.post("/api/lanes/cron/pause", {"note": "disk swap"})
    admin.post("/api/lanes/main/pause", {"note": "disk swap"})
    lane = admin.get(f"/api/runs/{id}").json()["lane"]
    assert reason(admin, id) == f"lane '{lane}' is paused by admin since {SINCE} (disk swap)"
    admin.post("/api/nodes/one/drain")
    assert reason(admin, id) == "every running node is draining: it was asked to take no more work"
    admin.post("/api/nodes/one/resume")
    admin.post(f"/api/lanes/{lane}/resume")
    web.beat(tasks=("hello",))
    assert reason(admin, id) == "nothing delays it: it is about to start"
    assert claim(web) == [id]
    assert reason(admin, id) is None


def test_a_full_lane_and_a_rate_that_is_used_up_are_told(web: Web, admin: Client) -> None:
    web.beat(tasks=("hello",))
    admin.send("PUT", "/api/lanes/narrow", json={"limit": 1})
    admin.send("PUT", "/api/lanes/slow", json={"limit": 9, "rate": "1/m"})
    ids = [enqueue(admin, policy={"lane": lane}) for lane in ("narrow", "narrow", "slow", "slow")]
    assert sorted(claim(web)) == [ids[0], ids[2]]
    assert (
        reason(admin, ids[1])
        == f"lane 'narrow' is full: 1 of 1 under way, the longest of them run {ids[0]} since {SINCE}"
    )
    assert reason(admin, ids[3]) == (
        "lane 'slow' starts no more than 1/m, which is used up: the next one starts at 2026-01-01 00:01:00 UTC"
    )


def test_a_run_that_waits_for_its_turn_names_the_one_before_it(web: Web, admin: Client) -> None:
    web.beat(tasks=("hello",))
    first, second, third = (enqueue(admin, policy={"session": "chat"}) for _ in range(3))
    for id in (second, third):
        assert reason(admin, id) == f"session 'chat' is busy: run {first} is queued before it"
    assert claim(web) == [first]
    assert reason(admin, second) == f"session 'chat' is busy: run {first} is running since {SINCE}"


def test_runs_of_a_schedule_that_go_one_after_the_other_say_so(web: Web, admin: Client) -> None:
    web.beat(tasks=("hello",))
    body = {"name": "a", "timing": "every 1h", "work": TASK, "policy": {"overlap": "queue_all"}}
    assert admin.post("/api/schedules", body).status_code == 201
    first, second = (admin.post("/api/schedules/a/trigger").json()["id"] for _ in range(2))
    turn = f"run {first} of 'a' is queued before it, and the runs of schedule 'a' go one after the other"
    assert reason(admin, second) == turn
    why = admin.get("/api/schedules/a/why").json()
    assert why["answer"] == f"It is queued: run {second}, by hand at 2026-01-01 00:00:00 UTC; {turn}."


def test_what_is_late_says_why(web: Web, admin: Client) -> None:
    enqueue(admin)
    admin.send("PUT", "/api/lanes/narrow", json={"limit": 1})
    enqueue(admin, policy={"lane": "narrow"})
    admin.post("/api/lanes/narrow/pause", {"note": "disk swap"})
    web.clock.advance("11s")
    assert {run["reason"] for run in admin.get("/api/overview").json()["late"]} == {NO_ENGINE}
    web.beat(tasks=("hello",))
    assert [run["reason"] for run in admin.get("/api/overview").json()["late"]] == [
        "nothing delays it: it is about to start",
        "lane 'narrow' is paused by admin since 2026-01-01 00:00:00 UTC (disk swap)",
    ]


def test_run_show_says_what_a_queued_run_waits_for(cli: CommandLine) -> None:
    cli.ok("schedule", "add", "a", "every 5m", "--task", "hello")
    cli.ok("schedule", "trigger", "a")
    assert cli.ok("run", "show", "1", "--json").json["reason"] == NO_ENGINE
    assert NO_ENGINE in " ".join(cli.ok("run", "show", "1").out.split())
    (listed,) = cli.ok("run", "ls", "--json").json
    assert listed["reason"] is None
    answer = cli.ok("why", "a", "--json").json
    assert answer["answer"].endswith(f"UTC; {NO_ENGINE}.")
    assert answer["run"]["reason"] == NO_ENGINE


def test_a_schedule_behind_a_paused_lane_names_the_lane_and_not_only_the_run_that_is_in_its_way(
    web: Web, admin: Client
) -> None:
    web.beat(tasks=("hello",))
    admin.post("/api/schedules", {"name": "tick", "timing": "every 10s", "work": TASK})
    assert admin.get("/api/schedules/tick").json()["blocked_by"] is None
    admin.post("/api/lanes/cron/pause", {"note": "disk swap"})
    web.clock.advance("10s")
    tick(web)
    web.clock.advance("10s")
    tick(web)
    skipped, queued = admin.get("/api/schedules/tick/runs").json()["items"]
    assert skipped["reason"] == f"run {queued['id']} was still active (overlap is skip)"
    expected: dict[str, Any] = {
        "cause": "lane_paused",
        "sentence": f"lane 'cron' is paused by admin since {SINCE} (disk swap)",
        "since": "2026-01-01T00:00:00Z",
        "until": None,
        "command": "ostinato lane resume cron",
        "action": {"verb": "lane.resume", "target": "cron", "label": "Resume lane cron", "arguments": {}},
        "chain": [{"kind": "run", "name": str(queued["id"])}, {"kind": "lane", "name": "cron"}],
    }
    assert admin.get("/api/schedules/tick").json()["blocked_by"] == expected
    assert admin.get(f"/api/runs/{queued['id']}").json()["blocked_by"] == {**expected, "chain": expected["chain"][1:]}
    why = admin.get("/api/schedules/tick/why").json()
    assert why["blocked_by"] == expected
    assert why["answer"].endswith(
        f"run {queued['id']} was still active (overlap is skip). "
        f"Run {queued['id']} still waits: {expected['sentence']}."
    )
    earlier = admin.get("/api/schedules/tick/why", params={"at": "2026-01-01T00:00:20Z"}).json()
    assert earlier["answer"].endswith("(overlap is skip).")
    admin.post("/api/lanes/cron/resume")
    assert admin.get("/api/schedules/tick").json()["blocked_by"] is None
    assert admin.get("/api/schedules/tick/why").json()["answer"].endswith("(overlap is skip).")


def test_lists_do_not_say_what_holds_up_each_of_them(web: Web, admin: Client) -> None:
    admin.post("/api/schedules", {"name": "a", "timing": "every 1h", "work": TASK})
    enqueue(admin)
    for path in ("/api/schedules", "/api/runs"):
        (item,) = admin.get(path).json()["items"]
        assert "blocked_by" not in item


def test_who_switched_a_schedule_off_and_why_is_told_with_the_way_back(web: Web, admin: Client) -> None:
    web.beat(tasks=("hello",))
    admin.post("/api/schedules", {"name": "it's", "timing": "every 1h", "work": TASK})
    off = admin.post("/api/schedules/it's/disable", {"note": "holiday"}).json()
    assert (off["off_by"], off["off_at"]) == ("admin", "2026-01-01T00:00:00Z")
    blocked = off["blocked_by"]
    assert blocked["cause"] == "off"
    assert blocked["sentence"] == f'schedule "it\'s" is switched off by admin at {SINCE} (holiday)'
    assert shlex.split(blocked["command"]) == ["ostinato", "schedule", "enable", "it's"]
    on = admin.post("/api/schedules/it's/enable").json()
    assert (on["blocked_by"], on["off_by"], on["off_at"]) == (None, None, None)


def test_what_a_person_switched_off_is_off_though_no_node_knows_its_task(web: Web, admin: Client) -> None:
    web.beat(tasks=("other",))
    admin.post("/api/schedules", {"name": "a", "timing": "every 5m", "work": TASK | {"task": "nosuch"}})
    assert admin.get("/api/schedules/a").json()["state"] == "broken"
    off = admin.post("/api/schedules/a/disable", {"note": "holiday"}).json()
    assert (off["state"], off["broken"], off["next_run_reason"]) == ("off", None, "disabled: holiday")
    (listed,) = admin.get("/api/schedules", params={"state": "off"}).json()["items"]
    assert (listed["state"], admin.get("/api/schedules", params={"state": "broken"}).json()["items"]) == ("off", [])
    counts = admin.get("/api/overview").json()["counts"]
    assert (counts["off"], counts["broken"]) == (1, 0)
    says = "schedule 'a' is switched off by admin at 2026-01-01 00:00:00 UTC (holiday)"
    shown = admin.get("/api/schedules/a").json()["blocked_by"]
    assert (shown["cause"], shown["sentence"], shown["action"]["label"]) == ("off", says, "Enable")
    assert admin.get("/api/schedules/a/why").json()["blocked_by"] == shown


def test_commands_of_the_command_line_are_for_the_database_that_was_named(cli: CommandLine) -> None:
    named = ("--db", "sqlite:///other jobs.db")
    cli.ok("schedule", "add", "a", "every 5m", "--task", "hello", *named)
    cli.ok("schedule", "trigger", "a", *named)
    cli.ok("schedule", "disable", "a", "--note", "holiday", *named)
    shown = cli.ok("schedule", "show", "a", "--json", *named).json["blocked_by"]
    assert shlex.split(shown["command"]) == ["ostinato", "schedule", "enable", "a", *named]
    assert "(holiday)" in shown["sentence"]
    for asked in (("schedule", "show", "a"), ("why", "a")):
        said = cli.ok(*asked, *named).out
        assert shown["sentence"] in " ".join(said.split())
        assert f"to end it: {shown['command']}\n" in said
    run = cli.ok("run", "show", "1", *named).out
    assert "to end it: ostinato worker --app MODULE:APP --db 'sqlite:///other jobs.db'\n" in run
    assert cli.ok("why", "a", "--json", *named).json["blocked_by"] == shown
    cli.ok("schedule", "enable", "a", *named)
    assert cli.ok("schedule", "show", "a", "--json", *named).json["blocked_by"]["cause"] == "no_engine"


def test_a_password_of_the_database_is_not_printed_with_the_command() -> None:
    assert open_database._named("postgresql://ada:secret@db/jobs", None) == "--db 'postgresql://ada:***@db/jobs'"


def test_commands_are_on_one_line_however_narrow_the_terminal_is_and_whatever_is_in_their_names(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    (cli.folder / "a folder with a rather long name").mkdir()
    named = ("--db", "sqlite:///a folder with a rather long name/the jobs of the shop.db")
    cli.ok("schedule", "add", "my job", "every 5m", "--task", "hello", *named)
    cli.ok("schedule", "trigger", "my job", *named)
    cli.ok("schedule", "disable", "my job", "--keep-retries", *named)
    for asked in (("schedule", "show", "my job"), ("why", "my job")):
        said = cli.ok(*asked, *named).out
        (line,) = [line for line in said.splitlines() if "to end it: " in line]
        words = shlex.split(line.partition("to end it: ")[2])
        assert words == ["ostinato", "schedule", "enable", "my job", *named]
        cli.ok(*words[1:])
        cli.ok("schedule", "disable", "my job", "--keep-retries", *named)
    said = cli.ok("why", "my job", *named).out
    (hint,) = [line for line in said.splitlines() if "run show" in line]
    assert hint.strip() == f"'ostinato --db '{named[1]}' run show 1'"
    assert max(len(line) for line in said.splitlines() if "ostinato" not in line) <= 40
    (fix,) = [line for line in cli("doctor", *named).out.splitlines() if "worker'" in line]
    assert fix.strip().endswith(f"'ostinato --db '{named[1]}' worker'")


def test_nothing_is_wrapped_in_a_pipe(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS")
    cli.ok("schedule", "add", "a", "every 5m", "--task", "hello", "--note", "word " * 40)
    shown = [line.strip() for line in cli.ok("schedule", "show", "a").out.splitlines()]
    assert f"note: {'word ' * 40}".strip() in shown


def test_a_hint_names_the_database_once_whatever_is_quoted_in_it() -> None:
    name_database("my jobs.db", None)
    try:
        said = as_typed("run 'ostinato lane set 'a b' 3 --db 'x y'', or 'ostinato lane rm 'a b''.")
    finally:
        name_database(None, None)
    assert said == "run 'ostinato lane set 'a b' 3 --db 'x y'', or 'ostinato --db 'my jobs.db' lane rm 'a b''."


def test_an_engine_is_started_with_the_app_that_was_named(cli: CommandLine) -> None:
    cli.ok("schedule", "add", "a", "every 5m", "--task", "hello", "--app", "jobs:app")
    show = ("schedule", "show", "a", "--json")
    assert cli.ok(*show, "--app", "jobs:app").json["blocked_by"]["command"] == "ostinato worker --app jobs:app"
    assert cli.ok(*show).json["blocked_by"]["command"] == "ostinato worker --app MODULE:APP"
    (cli.folder / "ostinato.toml").write_text('app = "jobs:app"\n')
    assert cli.ok(*show).json["blocked_by"]["command"] == "ostinato worker --app jobs:app"


def test_python_is_told_the_same(app: Ostinato) -> None:
    app.task("job", retry=0)(lambda: None)
    app.schedules.add("job", "every 1h", "job")
    run = app.schedules.trigger("job")
    blocked = app.runs.blocked_by(run.id)
    assert blocked is not None
    assert (blocked.cause, blocked.sentence) == (BlockedCause.NO_ENGINE, NO_ENGINE)
    assert app.why("job").blocked_by == replace(blocked, chain=(Link("run", str(run.id)),))
    drain(app)
    assert app.runs.blocked_by(run.id) is None


def test_a_run_that_is_put_off_says_so_once(web: Web, admin: Client) -> None:
    id = enqueue(admin, delay="5m")
    shown = admin.get(f"/api/runs/{id}").json()
    assert shown["reason"] == f"run {id} is not ready before 2026-01-01 00:05:00 UTC"
    assert shown["blocked_by"]["sentence"] == shown["reason"]


def test_a_run_whose_node_was_lost_is_not_said_to_run_there(web: Web, admin: Client) -> None:
    schedule(admin, "a", "every 1h")
    admin.post("/api/schedules/a/trigger")
    web.beat(tasks=("hello",), lease=MINUTE)
    (id,) = claim(web)
    assert admin.get(f"/api/runs/{id}").json()["blocked_by"] is None
    assert admin.get("/api/schedules/a/why").json()["answer"].startswith("It is running: ")
    web.clock.advance("10m")
    web.beat("two", tasks=("hello",))
    shown = admin.get(f"/api/runs/{id}").json()["blocked_by"]
    says = f"run {id} was on node one, which is lost since {SINCE}: another node takes it over in a moment"
    assert (shown["cause"], shown["sentence"]) == ("node_lost", says)
    why = admin.get("/api/schedules/a/why").json()
    assert (why["blocked_by"]["cause"], why["blocked_by"]["sentence"]) == ("node_lost", says)
    assert why["answer"] == f"It was started: run {id}, by hand at {SINCE}, attempt 1; {says}."


def test_a_retry_that_due_times_are_left_out_for_can_be_cancelled(web: Web, admin: Client) -> None:
    schedule(admin, "a", "every 5m", retry=3)
    web.beat(tasks=("hello",))
    admin.post("/api/schedules/a/trigger")
    (id,) = claim(web)
    late = "UPDATE runs SET state = 'queued', cause = 'raised', reason = 'attempt 1 of 4 failed', node = NULL, "
    web.run(raw(web.container.store, f"{late} ready_at = ready_at + {60 * MINUTE} WHERE id = {id}"))
    assert admin.get("/api/schedules/a").json()["blocked_by"]["command"] is None
    web.clock.advance("5m")
    web.beat(tasks=("hello",))
    tick(web)
    shown = admin.get("/api/schedules/a").json()["blocked_by"]
    assert (shown["cause"], shown["command"]) == ("retry", f"ostinato run cancel {id}")
    assert shown["action"]["label"] == f"Cancel run {id}"
    assert (
        admin.get("/api/schedules/a/why")
        .json()["answer"]
        .endswith(f" Run {id} is not ready before 2026-01-01 01:00:00 UTC: attempt 1 of 4 failed.")
    )


def test_a_check_that_failed_is_told_while_the_next_run_is_only_recorded(web: Web, admin: Client) -> None:
    schedule(admin, "a", "every 5m")
    web.beat(tasks=("hello",))
    web.clock.advance("5m")
    tick(web)
    row = (
        "UPDATE runs SET state = 'skipped', cause = 'check', reason = 'check failed: ink: empty', finished_at = due_at"
    )
    web.run(raw(web.container.store, row))
    web.clock.advance("4m59s")
    web.beat(tasks=("hello",))
    assert admin.get("/api/schedules/a").json()["blocked_by"]["cause"] == "check"
    tick(web, ahead=MINUTE)
    shown = admin.get("/api/schedules/a").json()
    assert (shown["last_run"]["state"], shown["blocked_by"]["cause"]) == ("queued", "check")
