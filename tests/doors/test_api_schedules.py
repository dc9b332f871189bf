"""/api/schedules: listed, added, changed and removed over REST."""

from __future__ import annotations

import re
from base64 import urlsafe_b64encode
from pathlib import Path
from typing import Any

import pytest

from tests.doors.web import Client, Web

TASK = {"kind": "function", "task": "hello"}
SHELL = {"kind": "shell", "command": "true"}


def add(client: Client, name: str, timing: str = "every 5m", **fields: Any) -> Any:
    answer = client.post("/api/schedules", {"name": name, "timing": timing, "work": TASK, **fields})
    assert answer.status_code in (200, 201), answer.text
    return answer.json()


def refused(client: Client, method: str, path: str, json: Any, **parts: Any) -> list[tuple[str, int | None]]:
    """The fields that the server does not take, with the position in a timing."""
    answer = client.send(method, path, json=json, **parts)
    assert answer.status_code == 422, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    return [(error["field"], error["position"]) for error in answer.json()["errors"]]


def change(client: Client, ref: str, changes: Any, **headers: str) -> Any:
    return client.send("PATCH", f"/api/schedules/{ref}", json=changes, headers=headers)


def test_a_schedule_is_added_and_answers_where_it_is(admin: Client) -> None:
    answer = admin.post("/api/schedules", {"name": "nightly", "timing": "daily 03:00", "work": TASK, "note": "hi"})
    assert answer.status_code == 201
    schedule = answer.json()
    assert (answer.headers["location"], answer.headers["etag"]) == ("/api/schedules/nightly", f'"{schedule["id"]}.1"')
    assert (schedule["sentence"], schedule["zone"]) == ("At 03:00 every day (UTC).", "UTC")
    assert (schedule["next_run_at"], schedule["next_run_reason"]) == ("2026-01-01T03:00:00Z", None)
    assert (schedule["running"], schedule["last_run"], schedule["note"]) == (0, None, "hi")
    assert "recent" not in schedule
    assert admin.get("/api/schedules/nightly").json() == schedule


def test_adding_it_again_changes_nothing_and_answers_200(admin: Client) -> None:
    first = add(admin, "a")
    again = admin.post("/api/schedules", {"name": "a", "timing": "every 5m", "work": TASK})
    assert (again.status_code, again.json()) == (200, first)
    assert "location" not in again.headers


@pytest.mark.parametrize("name", ["a b", "a/b", "ünïcode ✓", "100%", "a%2Fb", "...", "a?b#c", "bulk", "x/runs"])
def test_a_name_may_hold_anything_that_can_be_printed(web: Web, admin: Client, name: str) -> None:
    answer = admin.post("/api/schedules", {"name": name, "timing": "every 5m", "work": TASK})
    assert answer.status_code == 201
    place = answer.headers["location"]
    found = admin.get(place)
    assert (found.status_code, found.json()["name"]) == (200, name)
    assert admin.post(f"{place}/trigger").json()["schedule"] == name
    assert len(admin.get(f"{place}/runs").json()["items"]) == 1
    assert admin.send("DELETE", place).status_code == 204
    assert admin.get(place).status_code == 404


@pytest.mark.parametrize("name", [".", ".."])
def test_a_name_that_no_address_can_hold_is_refused(admin: Client, name: str) -> None:
    answer = admin.post("/api/schedules", {"name": name, "timing": "every 5m", "work": TASK})
    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    assert (error["field"], error["hint"]) == ("name", "give a name such as nightly")


def test_a_number_finds_a_schedule_unless_one_is_called_so(admin: Client) -> None:
    first, second = add(admin, "a"), add(admin, "b")
    assert admin.get(f"/api/schedules/{second['id']}").json()["name"] == "b"
    named = add(admin, str(second["id"]))
    assert admin.get(f"/api/schedules/{second['id']}").json()["id"] == named["id"]
    assert admin.get(f"/api/schedules/{first['id']}").json()["name"] == "a"
    assert admin.get("/api/schedules/99999999999999999999").status_code == 404


@pytest.mark.parametrize(
    ("fields", "field", "position"),
    [
        ({"timing": "evry 5m"}, "timing", 0),
        ({"timing": "daily 25:00"}, "timing", 6),
        ({"timing": ""}, "timing", 0),
        ({"zone": "Europe/Berln"}, "zone", 0),
        ({"name": " a"}, "name", None),
        ({"name": "a\n"}, "name", None),
        ({"work": {"kind": "shell", "command": ""}}, "work.command", None),
        ({"work": {"kind": "shell", "command": ["a", 1]}}, "work.command", None),
        ({"work": {"kind": "shell"}}, "work.command", None),
        ({"work": {"kind": "http", "method": "GET", "url": "ftp://x"}}, "work.url", None),
        ({"work": {"kind": "agent", "prompt": "x", "context": "y"}}, "work.context", None),
        ({"work": {"kind": "function", "task": "x", "more": 1}}, "work.more", None),
        ({"work": {"kind": "dance"}}, "work", None),
        ({"policy": {"timeout": "soon"}}, "policy.timeout", None),
        ({"policy": {"retry": {"max": -1}}}, "policy.retry.max", None),
        ({"policy": {"retry": {"max": "3"}}}, "policy.retry.max", None),
        ({"policy": {"gate": {"command": ""}}}, "policy.gate.command", None),
        ({"policy": {"budget": {"per_run_usd": 0}}}, "policy.budget.per_run_usd", None),
        ({"policy": {"break_after": 2**40}}, "policy.break_after", None),
        ({"policy": {"unheard": 1}}, "policy.unheard", None),
        ({"note": "a\0b"}, "note", None),
        ({"enabled": "yes"}, "enabled", None),
        ({"owner": "me"}, "owner", None),
    ],
)
def test_what_is_wrong_is_told_at_its_field(admin: Client, fields: Any, field: str, position: int | None) -> None:
    body = {"name": "a", "timing": "every 5m", "work": TASK, **fields}
    assert refused(admin, "POST", "/api/schedules", body) == [(field, position)]


WRONG = {
    "timing": "every 5x",
    "zone": "Nope/X",
    "work": {"kind": "shell", "command": ""},
    "policy": {"timeout": "5x", "retry": "abc", "budget": {"per_day_usd": -1}},
}
WRONG_FIELDS = {"timing", "zone", "work.command", "policy.timeout", "policy.retry", "policy.budget.per_day_usd"}


def test_one_answer_names_every_wrong_field(admin: Client) -> None:
    answer = admin.post("/api/schedules", {"name": " x", **WRONG})
    assert (answer.status_code, answer.json()["type"]) == (422, "/problems/invalid-input")
    errors = {error["field"]: error for error in answer.json()["errors"]}
    assert set(errors) == {"name", *WRONG_FIELDS}
    assert (errors["timing"]["position"], errors["timing"]["hint"]) == (7, None)
    assert all(f"{field}: {error['message']}" in answer.json()["detail"] for field, error in errors.items())
    assert admin.get("/api/schedules").json()["total"] == 0


def test_one_answer_names_every_wrong_change(admin: Client) -> None:
    before = add(admin, "a")
    assert {field for field, _ in refused(admin, "PATCH", "/api/schedules/a", WRONG)} == WRONG_FIELDS
    assert admin.get("/api/schedules/a").json() == before


def test_what_alone_is_wrong_is_told_as_what_it_is(admin: Client) -> None:
    answer = admin.post("/api/schedules", {"name": "a", "timing": "every 5x", "work": TASK}).json()
    assert (answer["type"], answer["detail"]) == ("/problems/timing-error", "5 has no unit 'x' (w, d, h, m, s or ms)")


def test_a_timing_that_counts_from_now_is_taken(admin: Client) -> None:
    assert add(admin, "a", "in 30m")["next_run_at"] == "2026-01-01T00:30:00Z"
    assert refused(admin, "POST", "/api/schedules", {"name": "b", "timing": "in 5x", "work": TASK})[0][0] == "timing"
    body = {"name": "b", "timing": "in 30m or every 5x", "zone": "Nope/X", "work": TASK}
    assert {field for field, *_ in refused(admin, "POST", "/api/schedules", body)} == {"timing", "zone"}


def test_keep_may_be_an_age_alone_as_elsewhere(admin: Client) -> None:
    add(admin, "a", policy={"keep": {"age": "2d", "count": 7}})
    assert change(admin, "a", {"policy": {"keep": "1d"}}).status_code == 200
    assert admin.get("/api/schedules/a").json()["policy"]["keep"] == {"age": "1d", "count": 7}


def test_a_part_of_a_budget_changes_what_is_there(admin: Client) -> None:
    add(admin, "a", policy={"budget": {"per_run_usd": 1, "per_day_usd": 5}})
    for part in ({}, {"per_run_usd": None}):
        assert change(admin, "a", {"policy": {"budget": part}}).status_code == 200
    assert admin.get("/api/schedules/a").json()["policy"]["budget"]["per_day_usd"] == 5
    assert refused(admin, "PATCH", "/api/schedules/a", {"policy": {"budget": {"per_day_usd": None}}}) == [
        ("policy.budget", None)
    ]


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ({"retry": "abc"}, "give a number of retries, or an object with max, base, longest, spread, covers, on, never"),
        ({"retry": True}, "give a number of retries, or an object with max, base, longest, spread, covers, on, never"),
        ({"retry": None}, "give a number of retries, or an object with max, base, longest, spread, covers, on, never"),
        ({"gate": 5}, "give a command, or an object with command, timeout"),
        ({"keep": 5}, 'give an age such as "30d", or an object with age, count, such as {"age": "30d", "count": 1000}'),
        (
            {"budget": 5},
            'give an object with per_run_usd, per_day_usd, per_day_runs, such as {"per_day_usd": 5}',
        ),
    ],
    ids=str,
)
def test_a_value_of_another_kind_is_told_what_is_taken(admin: Client, policy: Any, message: str) -> None:
    body = {"name": "a", "timing": "every 5m", "work": TASK, "policy": policy}
    (error,) = admin.post("/api/schedules", body).json()["errors"]
    assert error["message"] == message


def test_every_field_of_a_policy_is_told_in_plain_words_and_at_its_place(admin: Client) -> None:
    parts: dict[str, dict[str, Any]] = {
        "retry": {"max": "three", "base": "soon", "longest": "later", "spread": "some", "covers": "most"},
        "gate": {"command": "", "timeout": "soon"},
        "budget": {"per_run_usd": "some", "per_day_usd": 0, "per_day_runs": 0.5},
        "keep": {"age": "1y", "count": 0},
    }
    whole = {"timeout": "soon", "priority": "high", "remaining": 0, "catch_up_window": "1y", "overlap": "maybe"}
    body = {"name": "a", "timing": "every 5m", "work": TASK, "policy": {**whole, **parts}}
    answer = admin.post("/api/schedules", body)
    told = {error["field"]: error["message"] for error in answer.json()["errors"]}
    wanted = {f"policy.{name}.{part}" for name, given in parts.items() for part in given}
    assert set(told) == wanted | {f"policy.{name}" for name in whole}
    assert told["policy.retry.max"] == told["policy.priority"] == "give a whole number"
    for foreign in ("Input should", "timedelta", "valid integer", "valid number"):
        assert foreign not in answer.text


@pytest.mark.parametrize(
    "wrong",
    [
        {"work": {"kind": "agent", "prompt": " "}},
        {"work": {"kind": "shell", "command": ""}},
        {"work": {"kind": "shell", "command": "true", "env": {"": "x"}}},
        {"policy": {"budget": {}}},
        {"policy": {"timeout": "0s"}},
    ],
    ids=str,
)
def test_a_hint_is_not_python(admin: Client, wrong: Any) -> None:
    (error,) = admin.post("/api/schedules", {"name": "a", "timing": "every 5m", "work": TASK, **wrong}).json()["errors"]
    assert not re.search(r"'|\bNone\b|\w\(", error["hint"])


def test_a_request_without_a_method_gets(admin: Client) -> None:
    work = {"kind": "http", "url": "https://example.com"}
    assert add(admin, "a", work=work)["work"]["method"] == "GET"
    assert add(admin, "a", work={**work, "method": "post"})["work"]["method"] == "POST"


def test_a_lane_that_does_not_exist_is_refused_with_those_that_there_are(admin: Client) -> None:
    body = {"name": "a", "timing": "every 5m", "work": TASK, "policy": {"lane": "zz"}}
    assert refused(admin, "POST", "/api/schedules", body) == [("policy.lane", None)]
    assert admin.get("/api/schedules/a").status_code == 404
    add(admin, "a")
    (error,) = admin.send("PATCH", "/api/schedules/a", json={"policy": {"lane": "Team"}}).json()["errors"]
    assert (error["field"], error["message"], error["hint"]) == (
        "policy.lane",
        "there is no lane 'Team'",
        "did you mean 'team'?",
    )
    assert refused(admin, "POST", "/api/runs", {"work": TASK, "policy": {"lane": "zz"}}) == [("policy.lane", None)]
    message = {"task": "hello", "payload": "x", "lane": "zz"}
    (error,) = admin.send("POST", "/api/sessions/dm/messages", json=message).json()["errors"]
    assert (error["field"], error["hint"]) == ("lane", "there are cron, main, subagent, team")
    assert change(admin, "a", {"policy": {"lane": "cron", "priority": 3}}).json()["policy"]["priority"] == 3
    assert admin.send("PUT", "/api/lanes/zz", json={"limit": 2}).status_code == 200
    assert change(admin, "a", {"policy": {"lane": "zz"}}).json()["policy"]["lane"] == "zz"


def test_a_schedule_of_an_unknown_project_is_refused(admin: Client) -> None:
    body = {"name": "a", "timing": "every 5m", "work": TASK, "project": "nowhere"}
    assert admin.post("/api/schedules", body).status_code == 404


def test_a_change_touches_only_what_is_given(admin: Client) -> None:
    before = add(admin, "a", policy={"retry": {"max": 5, "base": "1s"}, "timeout": "30s"}, note="why")
    after = change(admin, "a", {"policy": {"retry": {"max": 7}, "lane": "main"}})
    assert after.status_code == 200
    expected = {**before["policy"], "lane": "main", "retry": {**before["policy"]["retry"], "max": 7}}
    assert after.json()["policy"] == expected
    assert (after.json()["timing"], after.json()["note"], after.json()["work"]) == ("every 5m", "why", before["work"])
    assert after.headers["etag"] == f'"{before["id"]}.2"'


def test_null_takes_a_note_a_project_a_gate_and_a_timeout_away(web: Web, admin: Client, tmp_path: Path) -> None:
    assert admin.post("/api/projects", {"name": "blog", "folder": str(tmp_path)}).status_code == 201
    add(
        admin, "a", note="why", project="blog", policy={"gate": "./any", "timeout": "5s", "budget": {"per_day_runs": 3}}
    )
    changes = {"note": None, "project": None, "policy": {"gate": None, "timeout": None, "budget": None}}
    changed = change(admin, "a", changes).json()
    assert (changed["note"], changed["project"]) == (None, None)
    assert [changed["policy"][name] for name in ("gate", "timeout", "budget")] == [None, None, None]
    assert change(admin, "a", {"note": None}).json()["version"] == changed["version"]


def test_another_zone_alone_moves_the_due_time(admin: Client) -> None:
    add(admin, "a", "daily 03:00", zone="UTC")
    assert change(admin, "a", {"zone": "Europe/Berlin"}).json()["next_run_at"] == "2026-01-01T02:00:00Z"


def test_a_change_with_an_old_version_is_refused_with_the_one_there_is(admin: Client) -> None:
    id = add(admin, "a")["id"]
    assert change(admin, "a", {"note": "one"}, **{"If-Match": f'"{id}.1"'}).status_code == 200
    for given in (f'"{id}.1"', f"{id}.1", "nonsense", f'"{id}.2x"', f'W/"{id}.1"', '"2"', f'"{id + 1}.2"'):
        answer = change(admin, "a", {"note": "two"}, **{"If-Match": given})
        assert (answer.status_code, answer.json()["version"]) == (412, 2)
    assert change(admin, "a", {"note": "two"}, **{"If-Match": f'"{id}.1", "{id}.2"'}).status_code == 200
    assert change(admin, "a", {"note": "of three"}, **{"If-Match": f"{id}.3"}).status_code == 200
    assert change(admin, "a", {"note": "three"}, **{"If-Match": "*"}).json()["note"] == "three"


def test_enabled_in_a_change_switches_after_the_rest(admin: Client) -> None:
    add(admin, "a")
    off = change(admin, "a", {"enabled": False, "note": "holiday"}).json()
    assert (off["enabled"], off["next_run_at"], off["next_run_reason"]) == (False, None, "disabled")
    assert (off["note"], off["off_note"]) == ("holiday", None)
    on = change(admin, "a", {"enabled": True, "timing": "every 10m"}).json()
    assert (on["enabled"], on["next_run_at"]) == (True, "2026-01-01T00:10:00Z")


def test_wrong_changes_are_told_at_their_fields(admin: Client) -> None:
    add(admin, "a")
    path = "/api/schedules/a"
    assert refused(admin, "PATCH", path, {"timing": "every"}) == [("timing", 5)]
    assert refused(admin, "PATCH", path, {"zone": "Mars"}) == [("zone", 0)]
    assert refused(admin, "PATCH", path, {"policy": {"lane": 3}}) == [("policy.lane", None)]
    assert refused(admin, "PATCH", path, {"name": "b"}) == [("name", None)]
    assert refused(admin, "PATCH", path, {"timing": None}) == [("timing", None)]


def test_a_plain_schedule_is_an_operators_whole(web: Web, admin: Client, tmp_path: Path) -> None:
    operator = web.script("operator")
    assert admin.post("/api/projects", {"name": "blog", "folder": str(tmp_path)}).status_code == 201
    add(admin, "a")
    changes = {"project": "blog", "policy": {"budget": {"per_day_runs": 5}}}
    assert change(operator, "a", changes).status_code == 200
    again = {"name": "a", "timing": "every 6m", "work": {"kind": "function", "task": "hello"}}
    assert operator.post("/api/schedules", again).status_code == 409, "it is the admin's"
    assert operator.post("/api/schedules", {**again, "replace": True}).status_code == 200


@pytest.mark.parametrize("header", ["env:TOKEN", "Bearer file:/etc/passwd", "Basic  env:TOKEN"])
def test_a_header_with_a_secret_of_the_machine_is_an_admins(web: Web, admin: Client, header: str) -> None:
    operator = web.script("operator")
    add(operator, "mine")
    plain = {"kind": "http", "method": "POST", "url": "https://example.com", "headers": {"X-From": "an environment: x"}}
    secret = {**plain, "headers": {"Authorization": header}}
    assert change(operator, "mine", {"work": plain}).status_code == 200
    assert change(operator, "mine", {"work": secret}).status_code == 403
    body = {"name": "x", "timing": "every 5m", "work": secret}
    assert operator.post("/api/schedules", body).status_code == 403
    assert operator.post("/api/runs", {"work": secret}).status_code == 403
    assert admin.post("/api/runs", {"work": secret}).status_code == 201


def test_pages_hold_every_schedule_once_in_order(admin: Client) -> None:
    for number in range(7):
        add(admin, f"s{number}", f"every {number + 1}m")
    for sort, names in (("next", "0123456"), ("-name", "6543210"), ("created", "0123456")):
        seen, cursor = "", None
        for _ in range(5):
            query = {"sort": sort, "limit": "3"} | ({} if cursor is None else {"cursor": cursor})
            page = admin.get("/api/schedules", params=query).json()
            assert page["total"] == 7
            seen += "".join(item["name"][1] for item in page["items"])
            cursor = page["next"]
            if cursor is None:
                break
        assert seen == names


def test_a_cursor_is_good_for_its_own_list_alone(admin: Client) -> None:
    for number in range(3):
        add(admin, f"s{number}")
    cursor = admin.get("/api/schedules?limit=1").json()["next"]
    for query in (f"limit=1&sort=name&cursor={cursor}", f"q=s&cursor={cursor}", "cursor=AAAA", "cursor=%25", "cursor="):
        answer = admin.get(f"/api/schedules?{query}")
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "cursor")
    deep, long = urlsafe_b64encode(b"[" * 2_900).decode(), "A" * 4_001
    for cursor_of_nobody in (deep, long):
        answer = admin.get("/api/schedules", params={"cursor": cursor_of_nobody})
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "cursor")
    assert admin.get(f"/api/schedules?limit=2&cursor={cursor}").status_code == 200


def test_the_cursor_of_the_longest_name_is_taken(admin: Client) -> None:
    for end in "12":
        add(admin, "\U0001f550" * 199 + end)
    first = admin.get("/api/schedules?sort=name&limit=1").json()
    second = admin.get("/api/schedules", params={"sort": "name", "limit": "1", "cursor": first["next"]}).json()
    assert [page["items"][0]["name"][-1] for page in (first, second)] == ["1", "2"]


def test_a_list_can_be_filtered(web: Web, admin: Client) -> None:
    add(admin, "alpha")
    add(admin, "beta", enabled=False, note="waits for ALPHA")
    assert admin.post("/api/schedules/alpha/trigger").status_code == 201

    def names(query: str) -> list[str]:
        return [item["name"] for item in admin.get(f"/api/schedules?sort=name&{query}").json()["items"]]

    assert names("q=alpha") == ["alpha", "beta"]
    assert names("q=bet") == ["beta"]
    assert names("state=on") == ["alpha"]
    assert names("state=off") == ["beta"]
    assert names("state=running") == ["alpha"]
    assert names("state=broken") == []
    assert names("owner=code") == []
    schedules = web.container.services.schedules
    web.run(schedules.add("gamma", "every 1h", "hello", owner="crontab:box:/etc/crontab"))
    assert names("owner=crontab") == ["gamma"]
    assert names("owner=user") == ["alpha", "beta"]
    assert admin.get("/api/schedules?project=nowhere").status_code == 404
    (alpha,) = admin.get("/api/schedules?q=alpha&state=running").json()["items"]
    assert (alpha["running"], alpha["queued"]) == (1, 1)
    web.sql("UPDATE runs SET state = 'running', attempt = 1, started_at = ready_at")
    alpha = admin.get("/api/schedules/alpha").json()
    assert (alpha["running"], alpha["queued"]) == (1, 0)


def test_the_last_runs_come_with_a_list_if_they_are_asked_for(web: Web, admin: Client) -> None:
    add(admin, "a", policy={"overlap": "allow"})
    runs = [admin.post("/api/schedules/a/trigger").json()["id"] for _ in range(4)]
    assert admin.post(f"/api/runs/{runs[0]}/cancel").status_code == 200
    (item,) = admin.get("/api/schedules?recent=3").json()["items"]
    assert [run["id"] for run in item["recent"]] == runs[1:]
    assert item["recent"][0] == {"id": runs[1], "state": "queued", "seconds": None, "at": "2026-01-01T00:00:00Z"}
    assert "recent" not in admin.get("/api/schedules").json()["items"][0]


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=501", "sort=age", "state=odd", "owner=ada", "recent=101", "sorted=name"]
)
def test_a_query_that_nobody_understands_is_refused(admin: Client, query: str) -> None:
    assert admin.get(f"/api/schedules?{query}").status_code == 422
