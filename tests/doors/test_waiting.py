"""What a queued run waits for, as it is told: in GET /api/runs/{id}, in /api/overview, in why, and in `run show`."""

from __future__ import annotations

from typing import Any

from ostinato.models.ids import NodeId
from ostinato.stores.base import Claim
from tests.doors.command_line import CommandLine
from tests.doors.web import Client, Web

TASK = {"kind": "function", "task": "hello"}
MINUTE = 60_000_000
NO_ENGINE = "no engine is running: start one with 'ostinato up'"


def claim(web: Web, room: int = 4) -> list[int]:
    """The node takes what it can."""
    now = web.clock.now()
    found = web.run(web.container.store.runs.claim_runs(Claim(NodeId("one"), now, now, room, ("hello",), '["hello"]')))
    return [run.id for run in found.runs]


def enqueue(client: Client, **fields: Any) -> int:
    answer = client.post("/api/runs", {"work": TASK, **fields})
    assert answer.status_code == 201, answer.text
    return int(answer.json()["id"])


def reason(client: Client, id: int) -> str | None:
    found: str | None = client.get(f"/api/runs/{id}").json()["reason"]
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
    assert reason(admin, id) == (
        f"its lane '{lane}' is paused (disk swap): 'ostinato lane resume {lane}' starts its runs again"
    )
    admin.post("/api/nodes/one/drain")
    assert reason(admin, id) == "every running node is draining: 'ostinato node resume one' lets it take work again"
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
    assert reason(admin, ids[1]) == "its lane 'narrow' is full: 1 of 1 under way"
    assert reason(admin, ids[3]) == (
        "its lane 'slow' starts no more than 1/m, which is used up: the next one starts at 2026-01-01 00:01:00 UTC"
    )


def test_a_run_that_waits_for_its_turn_names_the_one_before_it(web: Web, admin: Client) -> None:
    web.beat(tasks=("hello",))
    first, second, third = (enqueue(admin, policy={"session": "chat"}) for _ in range(3))
    for id in (second, third):
        assert reason(admin, id) == f"it waits for its turn in its session 'chat', behind run {first}"
    assert claim(web) == [first]
    assert reason(admin, second) == f"it waits for its turn in its session 'chat', behind run {first}"


def test_runs_of_a_schedule_that_go_one_after_the_other_say_so(web: Web, admin: Client) -> None:
    web.beat(tasks=("hello",))
    body = {"name": "a", "timing": "every 1h", "work": TASK, "policy": {"overlap": "queue_all"}}
    assert admin.post("/api/schedules", body).status_code == 201
    first, second = (admin.post("/api/schedules/a/trigger").json()["id"] for _ in range(2))
    turn = f"it waits for its turn: the runs of its schedule go one after the other, behind run {first}"
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
        "its lane 'narrow' is paused (disk swap): 'ostinato lane resume narrow' starts its runs again",
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
