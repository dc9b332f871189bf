"""/api/runs: listed, asked for, cancelled, retried; and what they printed, whole and in parts."""

from __future__ import annotations

import pkgutil
import threading
from typing import Any

import pytest

from ostinato import Shell
from ostinato.models.run import Run
from tests.doors.web import Client, Web

TASK = {"kind": "function", "task": "hello"}
SHELL = {"kind": "shell", "command": "true"}


def enqueue(client: Client, **body: Any) -> int:
    answer = client.post("/api/runs", {"work": TASK, **body})
    assert answer.status_code in (200, 201), answer.text
    return int(answer.json()["id"])


def execute(web: Web, command: str) -> Run:
    """A run that has ended."""

    async def once() -> Run:
        return await web.container.execute(await web.container.services.runs.draft(Shell(command)))

    return web.run(once())


def test_work_is_queued_and_answers_where_it_is(admin: Client) -> None:
    work = {"kind": "function", "task": "hello", "args": [1, {"a": None}], "kwargs": {"x": "y"}}
    answer = admin.post("/api/runs", {"work": work, "policy": {"priority": 3, "lane": "team"}})
    assert (answer.status_code, answer.headers["location"]) == (201, "/api/runs/1")
    run = admin.get("/api/runs/1").json()
    assert run.pop("blocked_by")["cause"] == "no_engine"
    assert {**run, "reason": None} == answer.json()
    assert (run["work"], run["priority"], run["lane"], run["trigger"]) == (work, 3, "team", "api")
    assert (run["schedule"], run["schedule_id"], run["zone"]) == (None, None, "UTC")


def test_a_key_that_is_active_answers_the_same_run(admin: Client) -> None:
    assert enqueue(admin, key="once") == enqueue(admin, key="once")


def test_a_run_that_is_not_new_is_answered_with_200(admin: Client) -> None:
    def asked(task: str, **fields: str) -> tuple[int, int]:
        answer = admin.post("/api/runs", {"work": {"kind": "function", "task": task}, "key": "user:42", **fields})
        return answer.status_code, answer.json()["id"]

    assert asked("send_mail") == (201, 1)
    assert asked("sync_profile") == (201, 2), "a key belongs to its task"
    assert asked("sync_profile") == (200, 2)
    assert asked("send_mail", scope="users") == (201, 3)
    assert asked("sync_profile", scope="users") == (200, 3)
    refused = admin.post("/api/runs", {"work": {"kind": "function", "task": "send_mail"}, "scope": "users"})
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, "scope")


def test_a_start_can_be_put_off(admin: Client) -> None:
    later = admin.get(f"/api/runs/{enqueue(admin, delay='90s')}").json()
    assert later["ready_at"] == "2026-01-01T00:01:30Z"
    at = admin.get(f"/api/runs/{enqueue(admin, at='2026-01-01T02:00:00+01:00')}").json()
    assert at["ready_at"] == "2026-01-01T01:00:00Z"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"work": {"kind": "shell", "command": []}}, "work.command"),
        ({"work": {"kind": "shell", "command": "true", "nice": 40}}, "work.nice"),
        ({"work": {"kind": "shell", "command": "true", "interpreter": "bash -e"}}, "work.interpreter"),
        ({"work": {"kind": "shell", "command": ["true"], "interpreter": "bash"}}, "work.interpreter"),
        ({"work": {"kind": "shell", "command": "#" * 140_000, "interpreter": "node"}}, "work.command"),
        ({"work": {"kind": "shell", "command": "true", "env": {"A=B": "c"}}}, "work.env"),
        ({"work": TASK, "delay": "soon"}, "delay"),
        ({"work": TASK, "delay": "9999999999d"}, "delay"),
        ({"work": TASK, "delay": "200000000d"}, "delay"),
        ({"work": TASK, "at": "2026-01-01T00:00:00"}, "at"),
        ({"work": TASK, "at": "9999-12-31T23:59:59-14:00"}, "at"),
        ({"work": TASK, "delay": "5s", "at": "2026-01-01T00:00:00Z"}, "at"),
        ({"work": TASK, "key": ""}, "key"),
        ({"work": TASK, "key": "message:4:chat:1"}, "key"),
        ({"work": TASK, "key": "backfill:1:1767225600000000"}, "key"),
        ({"work": TASK, "policy": {"budget": {"per_day_runs": 1}}}, "policy.budget"),
        ({"work": TASK, "policy": {"session": "schedule:x"}}, "policy.session"),
        ({}, "work"),
    ],
)
def test_what_is_wrong_is_told_at_its_field(admin: Client, body: Any, field: str) -> None:
    answer = admin.post("/api/runs", body)
    assert answer.status_code == 422, answer.text
    assert [error["field"] for error in answer.json()["errors"]] == [field]


def test_one_answer_names_every_wrong_field(admin: Client) -> None:
    body = {"work": {"kind": "shell", "command": ""}, "key": "message:1", "delay": "5x", "policy": {"lane": ""}}
    answer = admin.post("/api/runs", body)
    assert answer.status_code == 422
    assert [error["field"] for error in answer.json()["errors"]] == ["work.command", "key", "delay", "policy.lane"]


def test_a_wrong_state_is_told_by_the_name_of_its_parameter(admin: Client) -> None:
    answer = admin.get("/api/runs?state=queued&state=odd")
    assert [error["field"] for error in answer.json()["errors"]] == ["state"]


def test_pages_hold_every_run_once_the_newest_first(admin: Client) -> None:
    for _ in range(5):
        enqueue(admin)
    seen: list[int] = []
    query = "limit=2"
    while query:
        page = admin.get(f"/api/runs?{query}").json()
        seen += [run["id"] for run in page["items"]]
        query = "" if page["next"] is None else f"limit=2&cursor={page['next']}"
    assert seen == [5, 4, 3, 2, 1]
    cursor = admin.get("/api/runs?limit=2").json()["next"]
    assert admin.get(f"/api/runs?limit=2&task=hello&cursor={cursor}").status_code == 422


def test_a_list_can_be_filtered(web: Web, admin: Client) -> None:
    admin.post("/api/schedules", {"name": "a", "timing": "every 5m", "work": TASK})
    manual = admin.post("/api/schedules/a/trigger").json()["id"]
    cancelled = enqueue(admin, policy={"lane": "team"})
    admin.post(f"/api/runs/{cancelled}/cancel")
    later = enqueue(admin, work=SHELL, delay="1h")

    def ids(query: str) -> list[int]:
        return [run["id"] for run in admin.get(f"/api/runs?{query}").json()["items"]]

    assert ids("schedule=a") == [manual]
    assert ids("task=hello") == [cancelled, manual]
    assert ids("lane=team") == [cancelled]
    assert ids("trigger=manual") == [manual]
    assert ids("state=cancelled") == [cancelled]
    assert ids("state=cancelled&state=queued") == [later, cancelled, manual]
    assert ids("cause=cancelled") == ids("cause=cancelled&cause=raised") == [cancelled]
    assert ids("cause=raised") == []
    assert ids("from=2026-01-01T00:30:00Z") == [later]
    assert ids("until=2026-01-01T00:30:00Z") == [cancelled, manual]
    assert ids("session=x") == []
    assert admin.get("/api/runs?schedule=none").status_code == 404
    assert admin.get("/api/runs?project=nowhere").status_code == 404
    assert admin.get("/api/runs?state=odd").status_code == 422
    assert admin.get("/api/runs?cause=odd").status_code == 422
    assert admin.get("/api/runs?from=2026-01-01").status_code == 422


def test_a_run_tells_who_asked_for_it_and_who_cancelled_it(admin: Client) -> None:
    schedule = {"name": "a", "timing": "every 5m", "work": TASK}
    assert admin.post("/api/schedules", schedule).status_code == 201
    triggered = admin.post("/api/schedules/a/trigger").json()
    assert (triggered["trigger"], triggered["started_by"], triggered["cancelled_by"]) == ("manual", "admin", None)
    queued = admin.get(f"/api/runs/{enqueue(admin)}").json()
    assert queued["started_by"] == "admin"
    cancelled = admin.post(f"/api/runs/{queued['id']}/cancel", {"reason": "not needed"}).json()
    assert (cancelled["reason"], cancelled["cancelled_by"]) == ("not needed", "admin")
    again = admin.post(f"/api/runs/{queued['id']}/retry").json()
    assert (again["trigger"], again["started_by"], again["cancelled_by"]) == ("manual", "admin", None)
    message = admin.post("/api/sessions/dm:1/messages", {"task": "hello", "payload": "hi"}).json()
    assert message["started_by"] == "admin"


def test_a_search_goes_through_the_ledger_span_by_span_and_says_where_it_goes_on(
    admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = {"kind": "function", "task": "tools.zip_all"}
    first = enqueue(admin, work=other)
    for _ in range(6):
        enqueue(admin)
    last = enqueue(admin, work=other)
    monkeypatch.setattr("ostinato.service.run_lists.SPAN", 2)
    monkeypatch.setattr("ostinato.service.run_lists.MOST_SPANS", 1)
    pages, cursor = [], None
    while True:
        page = admin.get("/api/runs", params={"q": "ZIP", "limit": 5} | ({"cursor": cursor} if cursor else {})).json()
        pages.append([run["id"] for run in page["items"]])
        if (cursor := page["next"]) is None:
            break
    assert pages == [[last], [], [], [first]]
    assert admin.get("/api/runs", params={"q": "nobody", "limit": 5}).json()["next"] is not None
    monkeypatch.setattr("ostinato.service.run_lists.SPAN", 200)
    assert admin.get("/api/runs", params={"q": "zip"}).json()["next"] is None


def test_a_page_may_be_asked_for_by_its_number_and_all_of_them_at_once(admin: Client) -> None:
    ids = [enqueue(admin) for _ in range(5)][::-1]

    def page(query: str) -> tuple[list[int], bool]:
        answer = admin.get(f"/api/runs?{query}").json()
        return [run["id"] for run in answer["items"]], answer["next"] is not None

    assert page("page=1&page_size=2") == (ids[:2], True)
    assert page("page=2&limit=2") == (ids[2:4], True)
    assert page("page=3&page_size=2") == (ids[4:], False)
    assert page("page=4&page_size=2") == ([], False)
    assert page("all=true") == (ids, False)
    for query, field in (
        ("page=1&cursor=x", "page"),
        ("page=5001&page_size=2", "page"),
        ("all=true&page=2", "page"),
        ("all=true&cursor=x", "all"),
        ("limit=50&page_size=2", "limit"),
        ("all=true&limit=2", "limit"),
        ("all=true&page_size=2", "page_size"),
    ):
        answer = admin.get(f"/api/runs?{query}")
        assert (answer.status_code, [one["field"] for one in answer.json()["errors"]]) == (422, [field])
    for path in ("schedules", "audit", "incidents", "deliveries", "schedules?sort=name"):
        sign = "&" if "?" in path else "?"
        assert admin.get(f"/api/{path}{sign}page=1&page_size=2").status_code == 200
        assert admin.get(f"/api/{path}{sign}all=true").status_code == 200


def test_all_schedules_at_once_have_only_a_few_of_their_runs(admin: Client) -> None:
    assert admin.get("/api/schedules?all=true&recent=5").status_code == 200
    answer = admin.get("/api/schedules?all=true&recent=6")
    assert (answer.status_code, [one["field"] for one in answer.json()["errors"]]) == (422, ["recent"])


def test_none_is_the_project_of_what_is_in_no_project(admin: Client) -> None:
    run = enqueue(admin)
    schedule = {"name": "a", "timing": "every 5m", "work": TASK}
    assert admin.post("/api/schedules", schedule).status_code == 201
    assert [one["id"] for one in admin.get("/api/runs?project=none").json()["items"]] == [run]
    assert [one["name"] for one in admin.get("/api/schedules?project=none").json()["items"]] == ["a"]


def test_a_queued_run_is_cancelled_with_its_reason_and_an_ended_one_is_not(web: Web, admin: Client) -> None:
    first, second = enqueue(admin), enqueue(admin)
    answer = admin.post(f"/api/runs/{first}/cancel", {"reason": "wrong button"})
    assert (answer.status_code, answer.json()["state"], answer.json()["reason"]) == (200, "cancelled", "wrong button")
    assert admin.post(f"/api/runs/{second}/cancel").json()["reason"] == "cancelled by admin"
    done = execute(web, "true")
    assert admin.post(f"/api/runs/{done.id}/cancel").status_code == 409


def test_an_ended_run_is_retried_as_a_new_one(web: Web, admin: Client) -> None:
    done = execute(web, "exit 3")
    answer = admin.post(f"/api/runs/{done.id}/retry")
    assert (answer.status_code, answer.json()["id"]) == (201, done.id + 1)
    assert answer.headers["location"] == f"/api/runs/{done.id + 1}"
    assert admin.post(f"/api/runs/{done.id + 1}/retry").status_code == 409


@pytest.mark.parametrize("path", ["", "/output", "/lines"])
@pytest.mark.parametrize(("id", "status"), [("99", 404), ("0", 422), ("x", 422), ("99999999999999999999", 422)])
def test_a_run_that_is_not_there(admin: Client, path: str, id: str, status: int) -> None:
    assert admin.get(f"/api/runs/{id}{path}").status_code == status


def test_output_is_text_of_which_a_part_can_be_asked_for(web: Web, admin: Client) -> None:
    id = execute(web, "printf 'one\\ntwö\\nthree\\n'").id
    text = "one\ntwö\nthree\n".encode()
    whole = admin.get(f"/api/runs/{id}/output")
    assert (whole.status_code, whole.content) == (200, text)
    assert (whole.headers["content-type"], whole.headers["accept-ranges"]) == ("text/plain; charset=utf-8", "bytes")

    def part(wanted: str) -> tuple[int, bytes, str | None]:
        answer = admin.get(f"/api/runs/{id}/output", headers={"Range": wanted})
        return answer.status_code, answer.content, answer.headers.get("content-range")

    size = len(text)
    assert part("bytes=0-2") == (206, b"one", f"bytes 0-2/{size}")
    assert part("bytes=4-") == (206, text[4:], f"bytes 4-{size - 1}/{size}")
    assert part("bytes=-6") == (206, b"three\n", f"bytes {size - 6}-{size - 1}/{size}")
    assert part("bytes=-999") == (206, text, f"bytes 0-{size - 1}/{size}")
    assert part("bytes=9-999") == (206, text[9:], f"bytes 9-{size - 1}/{size}")
    for whole_of_it in ("bytes=0-1,3-4", "lines=1-2", "bytes=-", "nonsense", "bytes=a-b"):
        assert part(whole_of_it)[:2] == (200, text)
    for beyond in (f"bytes={size}-", "bytes=-0", "bytes=5-2", "bytes=999-"):
        status, _, content_range = part(beyond)
        assert (status, content_range) == (416, f"bytes */{size}")


def test_output_has_a_head_without_a_body_and_can_have_stamps(web: Web, admin: Client) -> None:
    id = execute(web, "echo one").id
    head = admin.send("HEAD", f"/api/runs/{id}/output")
    assert (head.status_code, head.content, head.headers["content-length"]) == (200, b"", "4")
    stamped = admin.get(f"/api/runs/{id}/output?stamps=true").text
    assert stamped == "2026-01-01T00:00:00.000Z one\n"


def test_lines_are_told_from_where_one_left_off(web: Web, admin: Client) -> None:
    id = execute(web, "echo one; echo two").id
    answer = admin.get(f"/api/runs/{id}/lines").json()
    assert [(line["number"], line["line"]) for line in answer["lines"]] == [(1, "one"), (2, "two")]
    assert answer["ended"] is True
    assert [line["line"] for line in admin.get(f"/api/runs/{id}/lines?after=1").json()["lines"]] == ["two"]
    assert admin.get(f"/api/runs/{enqueue(admin)}/lines").json() == {"lines": [], "more": False, "ended": False}


def test_many_lines_come_in_portions_that_say_whether_there_are_more(web: Web, admin: Client) -> None:
    id = execute(web, "seq 2500").id
    told: list[str] = []
    sizes, after, more = [], 0, True
    while more:
        answer = admin.get(f"/api/runs/{id}/lines?after={after}").json()
        assert answer["ended"] is True
        told += [line["line"] for line in answer["lines"]]
        sizes.append(len(answer["lines"]))
        after, more = answer["lines"][-1]["number"], answer["more"]
    assert sizes == [1000, 1000, 500]
    assert told == [str(number) for number in range(1, 2501)]
    few = admin.get(f"/api/runs/{id}/lines?after=2497&limit=3").json()
    assert ([line["number"] for line in few["lines"]], few["more"]) == ([2498, 2499, 2500], False)
    assert [admin.get(f"/api/runs/{id}/lines?limit={wrong}").status_code for wrong in (0, 5001)] == [422, 422]


@pytest.mark.parametrize(
    ("path", "steps"),
    [
        ("output", ["ostinato.service.runs.output_text"]),
        ("lines", ["ostinato.service.live.lines.output_lines", "ostinato.api.routes.output.line_answer"]),
    ],
)
def test_output_is_parsed_and_encoded_beside_the_loop(
    web: Web, admin: Client, monkeypatch: pytest.MonkeyPatch, path: str, steps: list[str]
) -> None:
    id = execute(web, "echo one").id
    seen: dict[str, int] = {}

    def watched(step: str) -> None:
        real = pkgutil.resolve_name(step)

        def noted(*args: Any, **kwargs: Any) -> Any:
            seen[step] = threading.get_ident()
            return real(*args, **kwargs)

        monkeypatch.setattr(step, noted)

    for step in steps:
        watched(step)
    assert "one" in admin.get(f"/api/runs/{id}/{path}").text
    assert sorted(seen) == sorted(steps)
    assert threading.get_ident() not in seen.values(), "it holds up whatever else is on the loop"
