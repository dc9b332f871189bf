"""/api/lanes, /api/sessions, /api/nodes, /api/projects and /api/tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.doors.web import Client, Web

TASK = {"kind": "function", "task": "hello"}
MESSAGE = {"task": "hello", "payload": {"text": "hi"}}


def put(client: Client, path: str, json: Any) -> Any:
    return client.send("PUT", path, json=json)


def test_a_lane_is_made_resized_and_given_a_rate(operator: Client) -> None:
    made = put(operator, "/api/lanes/mail%2Fbulk", {"limit": 3, "rate": "10/m"})
    assert made.status_code == 200
    assert (made.json()["name"], made.json()["limit"], made.json()["rate"]) == ("mail/bulk", 3, "10/m")
    assert put(operator, "/api/lanes/mail%2Fbulk", {"rate": "none"}).json()["rate"] is None
    assert operator.get("/api/lanes/mail%2Fbulk").json()["limit"] == 3
    names = [lane["name"] for lane in operator.get("/api/lanes").json()["items"]]
    assert names == ["cron", "mail/bulk", "main", "subagent", "team"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"limit": 0}, "limit"),
        ({"limit": 2**40}, "limit"),
        ({"limit": "3"}, "limit"),
        ({"rate": "often"}, "rate"),
        ({}, "limit"),
        ({"size": 3}, "size"),
    ],
)
def test_a_wrong_lane_is_refused_at_its_field(operator: Client, body: Any, field: str) -> None:
    answer = put(operator, "/api/lanes/main", body)
    assert answer.status_code == 422
    assert [error["field"] for error in answer.json()["errors"]] == [field]


def test_a_lane_is_paused_with_a_note_and_resumed(operator: Client) -> None:
    paused = operator.post("/api/lanes/main/pause", {"note": "the disk is full"}).json()
    assert (paused["paused"], paused["note"]) == (True, "the disk is full")
    assert operator.post("/api/lanes/main/pause").status_code == 200
    assert operator.post("/api/lanes/main/resume").json()["paused"] is False


def test_a_lane_is_cleared_of_what_waits_in_it(operator: Client) -> None:
    for _ in range(3):
        operator.post("/api/runs", {"work": TASK})
    assert operator.get("/api/lanes/main").json()["queued"] == 3
    assert operator.post("/api/lanes/main/clear").json() == {"cleared": 3}
    assert operator.get("/api/runs/1").json()["reason"] == "lane cleared"


@pytest.mark.parametrize(("running", "more"), [(0, ""), (3, ", and other nodes take over its 3 runs")])
def test_a_lost_node_cannot_be_drained_and_its_runs_are_told_of_only_if_it_had_some(
    web: Web, operator: Client, running: int, more: str
) -> None:
    web.beat(running=running, lease=60_000_000)
    web.clock.advance("10m")
    refused = operator.post("/api/nodes/one/drain")
    assert (refused.status_code, refused.json()["detail"]) == (409, f"node 'one' was lost: it takes no work{more}")


@pytest.mark.parametrize("verb", ["pause", "resume", "clear"])
def test_a_lane_that_is_not_there(operator: Client, verb: str) -> None:
    assert operator.get("/api/lanes/none").status_code == 404
    assert operator.post(f"/api/lanes/none/{verb}").status_code == 404
    assert put(operator, "/api/lanes/none", {"rate": "1/s"}).status_code == 404


def test_a_message_is_queued_in_its_session(operator: Client) -> None:
    sent = operator.post("/api/sessions/dm%3A4%2F2/messages", {**MESSAGE, "debounce": "0s"})
    assert (sent.status_code, sent.json()["session"], sent.json()["trigger"]) == (201, "dm:4/2", "message")
    session = operator.get("/api/sessions/dm%3A4%2F2").json()
    assert (session["key"], session["queued"], session["running"]) == ("dm:4/2", 1, 0)
    messages = operator.get("/api/sessions/dm%3A4%2F2/messages").json()
    assert ([run["id"] for run in messages["items"]], messages["next"]) == ([1], None)
    (event,) = operator.get("/api/sessions/dm%3A4%2F2/events").json()["items"]
    assert (event["kind"], event["run"]) == ("enqueued", 1)
    assert operator.get(f"/api/sessions/dm%3A4%2F2/events?after={event['id']}").json()["items"] == []


def test_the_newest_events_can_be_asked_for(operator: Client) -> None:
    for _ in range(3):
        assert operator.post("/api/sessions/dm/messages", MESSAGE).status_code == 201
    events = operator.get("/api/sessions/dm/events").json()["items"]
    assert operator.get("/api/sessions/dm/events?limit=2").json()["items"] == events[:2]
    assert operator.get("/api/sessions/dm/events?limit=2&newest=true").json()["items"] == events[-2:]
    after = f"/api/sessions/dm/events?limit=2&newest=true&after={events[-2]['id']}"
    assert operator.get(after).json()["items"] == events[-1:]


def test_a_message_takes_every_way_of_sending_it(operator: Client) -> None:
    body = {
        **MESSAGE,
        "mode": "interrupt",
        "lane": "team",
        "priority": 2,
        "cap": 5,
        "drop": "new",
        "debounce": "0s",
        "max_concurrent": 2,
        "message_id": "m1",
        "retry": {"max": 0},
        "timeout": "30s",
    }
    first = operator.post("/api/sessions/chat/messages", body)
    assert (first.status_code, first.json()["lane"], first.json()["priority"]) == (201, "team", 2)
    assert operator.post("/api/sessions/chat/messages", body).json()["id"] == first.json()["id"]
    assert operator.get("/api/sessions/chat").json()["max_concurrent"] == 2


def test_a_full_mailbox_says_so(operator: Client) -> None:
    body = {**MESSAGE, "cap": 1, "drop": "new", "debounce": "0s"}
    assert operator.post("/api/sessions/chat/messages", body).status_code == 201
    full = operator.post("/api/sessions/chat/messages", body)
    assert (full.status_code, full.json()["type"]) == (409, "/problems/queue-full")


@pytest.mark.parametrize(
    ("key", "body", "field"),
    [
        ("chat", {"task": "hello"}, "payload"),
        ("chat", {"task": "", "payload": 1}, "task"),
        ("chat", {**MESSAGE, "cap": 0}, "cap"),
        ("chat", {**MESSAGE, "mode": "shout"}, "mode"),
        ("chat", {**MESSAGE, "debounce": "400d"}, "debounce"),
        ("chat", {**MESSAGE, "priority": 2**40}, "priority"),
        ("schedule%3Aa", MESSAGE, "key"),
        ("%20", MESSAGE, "key"),
    ],
)
def test_a_wrong_message_is_refused_at_its_field(operator: Client, key: str, body: Any, field: str) -> None:
    answer = operator.post(f"/api/sessions/{key}/messages", body)
    assert answer.status_code == 422, answer.text
    assert [error["field"] for error in answer.json()["errors"]] == [field]


def test_a_session_is_stopped_and_stopped_for_good(operator: Client) -> None:
    for _ in range(2):
        operator.post("/api/sessions/chat/messages", {**MESSAGE, "debounce": "0s"})
    assert operator.post("/api/sessions/chat/stop").json() == {"cancelled": 0, "dropped": 1}
    assert operator.post("/api/sessions/chat/stop_all").json() == {"cancelled": 0, "dropped": 1}
    assert operator.get("/api/sessions/chat").json()["stopped_at"] == "2026-01-01T00:00:00Z"


def test_sessions_are_found_by_a_part_of_their_key_and_by_being_busy(operator: Client) -> None:
    for key in ("dm%3A1", "dm%3A2", "room"):
        operator.post(f"/api/sessions/{key}/messages", MESSAGE)
    operator.post("/api/sessions/room/stop_all")

    def keys(query: str) -> list[str]:
        return sorted(session["key"] for session in operator.get(f"/api/sessions?{query}").json()["items"])

    assert keys("q=dm") == ["dm:1", "dm:2"]
    assert keys("busy=true") == ["dm:1", "dm:2"]
    assert keys("") == ["dm:1", "dm:2", "room"]
    assert len(keys("limit=1")) == 1
    for path in ("", "/messages", "/events"):
        assert operator.get(f"/api/sessions/none{path}").status_code == 404


def test_a_node_is_drained_and_resumed(web: Web, operator: Client) -> None:
    web.beat("node-1")
    (node,) = operator.get("/api/nodes").json()["items"]
    assert (node["id"], node["state"], node["draining"], node["slots"]) == ("node-1", "alive", False, 4)
    drained = operator.post("/api/nodes/node-1/drain")
    assert (drained.status_code, drained.json()["draining"]) == (200, True)
    assert operator.post("/api/nodes/node-1/resume").json()["draining"] is False
    assert operator.post("/api/nodes/none/drain").status_code == 404


def test_projects_are_an_admins_to_add_and_remove(web: Web, operator: Client, tmp_path: Path) -> None:
    admin = web.script("admin")
    body = {"name": "a/b", "folder": str(tmp_path), "env": {"LEVEL": "debug"}}
    assert operator.post("/api/projects", body).status_code == 403
    made = admin.post("/api/projects", body)
    assert (made.status_code, made.headers["location"]) == (201, "/api/projects/a%2Fb")
    assert admin.post("/api/projects", {"name": "a/b", "folder": str(tmp_path)}).status_code == 200
    assert admin.get("/api/projects/a%2Fb").json()["env"] == {"LEVEL": "debug"}
    admin.post("/api/schedules", {"name": "s", "timing": "every 5m", "work": TASK, "project": "a/b"})
    assert operator.get("/api/projects").json()["items"][0]["schedules"] == 1
    assert admin.send("DELETE", "/api/projects/a%2Fb").status_code == 409
    admin.send("DELETE", "/api/schedules/s")
    assert admin.send("DELETE", "/api/projects/a%2Fb").status_code == 204
    assert admin.get("/api/projects/a%2Fb").status_code == 404


@pytest.mark.parametrize(
    ("change", "field"),
    [({"folder": "/no/such/folder"}, "folder"), ({"name": "none"}, "project"), ({"env": {"A=": "b"}}, "env")],
)
def test_a_wrong_project_is_refused_at_its_field(web: Web, tmp_path: Path, change: Any, field: str) -> None:
    answer = web.script("admin").post("/api/projects", {"name": "blog", "folder": str(tmp_path), **change})
    assert answer.status_code == 422
    assert [error["field"] for error in answer.json()["errors"]] == [field]


def test_tasks_say_who_knows_them_and_how_many_schedules_call_them(web: Web, operator: Client) -> None:
    web.beat("node-1", ("hello", "other"))
    web.beat("node-2", ("hello",))
    web.beat("node-3", ("gone",), lease=-1)
    for name in ("a", "b"):
        operator.post("/api/schedules", {"name": name, "timing": "every 5m", "work": TASK})
    operator.post(
        "/api/schedules", {"name": "c", "timing": "every 5m", "work": {"kind": "function", "task": "unknown"}}
    )
    items = operator.get("/api/tasks").json()["items"]
    assert [(item["name"], item["nodes"], item["schedule_count"]) for item in items] == [
        ("hello", ["node-1", "node-2"], 2),
        ("other", ["node-1"], 0),
        ("unknown", [], 1),
    ]
    hello, *_ = items
    assert [one["name"] for one in hello["schedules"]] == ["a", "b"]
    first = hello["schedules"][0]
    assert (first["timing"], first["enabled"], first["next_run_at"]) == ("every 5m", True, hello["next_run_at"])
    assert (hello["running"], hello["running_since"], hello["kind"], hello["app"]) == (0, None, None, False)


def test_times_go_with_the_zone_of_the_settings(web: Web, admin: Client, tmp_path: Path) -> None:
    web.set(tz="Europe/Berlin")
    web.beat("n1", tasks=("hello",))
    made = [
        admin.post("/api/projects", {"name": "blog", "folder": str(tmp_path)}),
        admin.post("/api/tokens", {"name": "ci", "role": "viewer"}),
    ]
    assert admin.post("/api/sessions/chat/messages", MESSAGE).status_code == 201
    read = ("lanes", "lanes/main", "sessions", "sessions/chat", "sessions/chat/events", "nodes", "projects")
    asked = [admin.get(f"/api/{path}") for path in (*read, "projects/blog", "tokens", "logins", "audit")]
    done = [admin.post(f"/api/{path}") for path in ("lanes/main/pause", "lanes/main/resume", "nodes/n1/drain")]
    assert [answer.json()["zone"] for answer in (*made, *asked, *done)] == ["Europe/Berlin"] * 16


def test_a_message_for_a_task_that_no_running_node_knows_is_refused(web: Web, operator: Client) -> None:
    web.beat("n1", tasks=("hello",))
    answer = operator.post("/api/sessions/chat/messages", {**MESSAGE, "task": "helo"})
    (error,) = answer.json()["errors"]
    assert (answer.status_code, error["field"], error["hint"]) == (422, "task", "did you mean 'hello'?")


PROMPT = {"agent": {"model": "opus", "env": {"TOKEN": "s3cret-value"}}, "payload": "Hello"}


def test_a_prompt_is_queued_for_the_agent_of_its_session(admin: Client, web: Web) -> None:
    viewer = web.script("viewer")
    first = admin.post("/api/sessions/dm%3A42/messages", PROMPT)
    again = admin.post("/api/sessions/dm%3A42/messages", {**PROMPT, "payload": "And more"})
    assert (first.status_code, again.status_code, again.json()["id"]) == (201, 201, first.json()["id"])
    work = admin.get(f"/api/runs/{first.json()['id']}").json()["work"]
    assert (work["kind"], work["prompt"], work["context"]) == ("agent", "Hello\n\nAnd more", "session:dm:42")
    assert (work["model"], work["env"]) == ("opus", {"TOKEN": "s3cret-value"})
    assert viewer.get(f"/api/runs/{first.json()['id']}").json()["work"]["env"] == {"TOKEN": "***"}
    session = viewer.get("/api/sessions/dm%3A42").json()
    assert (session["cost_usd"], session["tokens_in"], session["context_used"]) == (0, 0, None)


def test_only_an_admin_sends_a_prompt(operator: Client, web: Web) -> None:
    for client in (operator, web.script("viewer")):
        answer = client.post("/api/sessions/dm%3A42/messages", PROMPT)
        assert answer.status_code == 403
    assert operator.get("/api/sessions").json()["items"] == []


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"payload": "Hello"}, "task"),
        ({**PROMPT, "task": "answer"}, "task"),
        ({**PROMPT, "agent": {"context": "shared"}}, "agent.context"),
        ({**PROMPT, "agent": {"context": "group"}}, "context"),
        ({**PROMPT, "agent": {"prompt": "hi"}}, "agent.prompt"),
        ({**PROMPT, "payload": " "}, "payload"),
        ({**PROMPT, "silent": "soon"}, "silent"),
        ({**PROMPT, "budget": 3}, "budget"),
        ({**PROMPT, "cap": 0}, "cap"),
    ],
)
def test_what_is_wrong_with_a_prompt_is_told_by_its_field(admin: Client, body: dict[str, Any], field: str) -> None:
    answer = admin.post("/api/sessions/dm%3A42/messages", body)
    assert answer.status_code == 422
    assert [error["field"] for error in answer.json()["errors"]] == [field]


def test_a_prompt_for_a_project_that_is_not_there_is_told(admin: Client) -> None:
    answer = admin.post("/api/sessions/dm%3A42/messages", {**PROMPT, "project": "nope"})
    assert answer.status_code == 404
