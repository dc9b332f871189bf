"""Lists of REST stay small, whatever the runs in them carry; one run has everything."""

from __future__ import annotations

from typing import Any

from tests.doors.web import Client, Web

LONG = "x" * 500_000
FIELDS = ["work", "result", "error"]


def add(web: Web, admin: Client, state: str) -> dict[str, Any]:
    """A schedule whose last run is long in everything, and that run."""
    work = {"kind": "function", "task": "hello", "args": [LONG]}
    assert admin.post("/api/schedules", {"name": state, "timing": "every 5m", "work": work}).status_code == 201
    id = admin.post(f"/api/schedules/{state}/trigger").json()["id"]
    change = f"state = '{state}', attempt = 1, started_at = ready_at, result = '\"{LONG}\"', error = '{LONG} the end'"
    change += ", finished_at = ready_at" if state == "failed" else ""
    web.sql(f"UPDATE runs SET {change} WHERE id = {id}")
    web.sql('UPDATE schedules SET work = \'{"kind":"function","task":"hello"}\'')
    return dict(admin.get(f"/api/runs/{id}").json())


def assert_brief(run: dict[str, Any], whole: dict[str, Any]) -> None:
    assert (run["id"], run["cut"]) == (whole["id"], FIELDS)
    assert (run["work"]["kind"], run["work"]["task"]) == ("function", "hello")
    assert run["work"]["args"][0].endswith("x…")
    assert run["result"].endswith("x…")
    assert (run["error"][0], run["error"][-8:]) == ("…", " the end")


def test_what_is_long_in_a_run_is_cut_wherever_it_stands_among_others(web: Web, admin: Client) -> None:
    running, failed = (add(web, admin, state) for state in ("running", "failed"))
    assert failed["work"]["args"] == [LONG]
    assert (failed["result"], failed["error"]) == (LONG, f"{LONG} the end")
    assert "cut" not in failed
    for path, place, whole in (
        ("/api/runs", ("items", 0), failed),
        ("/api/runs?state=failed", ("items", 0), failed),
        ("/api/schedules/failed/runs", ("items", 0), failed),
        ("/api/schedules?sort=name", ("items", 0, "last_run"), failed),
        ("/api/schedules/failed", ("last_run",), failed),
        ("/api/overview", ("failed", 0), failed),
        ("/api/overview", ("running", 0), running),
    ):
        answer = admin.get(path)
        assert len(answer.content) < 60_000, path
        found = answer.json()
        for key in place:
            found = found[key]
        assert_brief(found, whole)


def test_the_messages_of_a_session_are_brief_too(web: Web, admin: Client) -> None:
    sent = admin.post("/api/sessions/chat/messages", {"task": "reply", "payload": {"text": LONG, "from": "ada"}}).json()
    (listed,) = admin.get("/api/sessions/chat/messages").json()["items"]
    assert (listed["id"], listed["cut"]) == (sent["id"], ["work"])
    (payload,) = listed["work"]["kwargs"]["payloads"]
    assert payload["text"].startswith("xxx")
    whole = admin.get(f"/api/runs/{sent['id']}").json()
    assert whole["work"]["kwargs"]["payloads"] == [{"text": LONG, "from": "ada"}]


def test_of_the_attempts_a_list_has_the_last(web: Web, admin: Client) -> None:
    id = admin.post("/api/runs", {"work": {"kind": "function", "task": "hello"}}).json()["id"]
    for statement in (
        "INSERT INTO attempts (run_id, number, started_at, finished_at, state, error) "
        f"VALUES ({id}, 1, 1, 2, 'failed', 'a')",
        f"UPDATE runs SET state = 'failed', attempt = 2, started_at = 3, finished_at = 4, error = 'b' WHERE id = {id}",
    ):
        web.sql(statement)
    (listed,) = admin.get("/api/runs").json()["items"]
    assert [attempt["error"] for attempt in listed["attempts"]] == ["b"]
    assert [attempt["error"] for attempt in admin.get(f"/api/runs/{id}").json()["attempts"]] == ["a", "b"]
