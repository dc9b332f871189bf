"""A furnished server, and for each operation of the API a request that it must grant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ostinato import Run, ScheduleSpec, Shell
from ostinato.wiring import Container
from tests.doors.web import Web

__all__ = ["GOOD", "KNOWN", "Good", "furnish"]

KNOWN: dict[str, dict[str, Any]] = {
    "/api/calendars/{name}": {"name": "office"},
    "/api/channels/{name}": {"name": "ops"},
    "/api/incidents/{id}": {"id": 1},
    "/api/lanes/{name}": {"name": "cron"},
    "/api/logins/{id}": {"id": 1},
    "/api/nodes/{id}": {"id": "node-1"},
    "/api/projects/{name}": {"name": "blog"},
    "/api/rules/{id}": {"id": 1},
    "/api/runs/{id}": {"id": 1},
    "/api/schedules/{ref}": {"ref": "backup"},
    "/api/sessions/{key}": {"key": "chat"},
    "/api/tokens/{id}": {"id": 2},
}
"""Values of path parameters that lead to something which is there."""

ENDED, QUEUED = 1, 2
SHELL = {"kind": "shell", "command": "echo hello"}
TASK = {"kind": "function", "task": "hello"}
DECLARED = ScheduleSpec("coded", "every 1h", "hello", owner="code", origin="shop")


def furnish(web: Web, folder: Path) -> str:
    """One of everything, made through the doors where there is one; answers the token of its admin."""
    web.clock.move_to("2026-04-01T00:00:00Z")
    token = web.token("admin", "tests")
    admin = web.anybody(Authorization=f"Bearer {token}")
    blog = folder / "blog"
    blog.mkdir()
    made = [
        ("/api/projects", {"name": "blog", "folder": str(blog)}),
        ("/api/projects", {"name": "spare", "folder": str(blog)}),
        ("/api/schedules", {"name": "backup", "timing": "daily 03:00", "work": SHELL, "project": "blog"}),
        ("/api/schedules", {"name": "greet", "timing": "every 1h", "work": TASK}),
        ("/api/schedules", {"name": "idle", "timing": "every 1h", "work": TASK}),
        ("/api/schedules", {"name": "crontab", "timing": "daily 04:00", "work": {"kind": "check_in"}}),
        ("/api/tokens", {"name": "spare", "role": "viewer"}),
        ("/api/channels", {"name": "ops", "url": "json://127.0.0.1:9/hook"}),
        ("/api/channels", {"name": "spare", "url": "env:NOWHERE"}),
        ("/api/rules", {"channel": "ops", "on": ["failed"]}),
    ]
    assert web.run(_printed(web.container)).id == ENDED
    made += [
        ("/api/runs", {"work": TASK}),
        ("/api/sessions/chat/messages", {"task": "answer", "payload": {"text": "hi"}}),
    ]
    for path, body in made:
        response = admin.post(path, body)
        assert response.status_code == 201, response.text
    for name in ("office", "spare"):
        assert admin.send("PUT", f"/api/calendars/{name}", json={"dates": ["12-24"]}).status_code == 200
    web.run(web.container.services.schedules.add_many([DECLARED]))
    assert admin.send("PATCH", "/api/schedules/coded", json={"timing": "every 2h"}).status_code == 200
    assert admin.post("/api/login", {"token": token}).status_code == 200
    assert web.run(_failed(web.container)).state == "failed"
    web.beat("node-1", ("answer", "hello"))
    return token


async def _printed(container: Container) -> Run:
    """A run that has ended, with two lines of output."""
    return await container.execute(await container.services.runs.draft(Shell("echo one; echo two")))


async def _failed(container: Container) -> Run:
    """A run that opens an incident."""
    return await container.execute(await container.services.runs.draft(Shell("exit 3")))


@dataclass(frozen=True)
class Good:
    """What is sent, and what is answered."""

    path: str
    json: Any = None
    status: int = 200
    query: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)


GOOD = {
    "POST /api/login": Good("/api/login", {"token": "TOKEN"}),
    "POST /api/logout": Good("/api/logout", status=204),
    "GET /api/me": Good("/api/me"),
    "GET /api/schedules": Good("/api/schedules", query={"project": "blog", "recent": 5, "sort": "-last"}),
    "POST /api/schedules": Good(
        "/api/schedules",
        {
            "name": "new",
            "timing": "every 5m",
            "zone": "UTC",
            "work": {**TASK, "args": ["x"], "kwargs": {"a": "b"}},
            "policy": {"retry": {"max": 1}, "lane": "cron", "session": "chat", "checks": ["disk"]},
            "project": "blog",
            "note": "a new one",
            "enabled": False,
        },
        201,
    ),
    "POST /api/schedules/bulk": Good("/api/schedules/bulk", {"action": "disable", "names": ["greet", "nobody"]}),
    "GET /api/schedules/{ref}": Good("/api/schedules/backup"),
    "PATCH /api/schedules/{ref}": Good(
        "/api/schedules/backup",
        {"timing": "daily 04:00", "work": {"kind": "agent", "prompt": "hi"}},
        headers={"If-Match": '"1.1"'},
    ),
    "DELETE /api/schedules/{ref}": Good("/api/schedules/idle", status=204),
    "POST /api/schedules/{ref}/enable": Good("/api/schedules/greet/enable"),
    "POST /api/schedules/{ref}/revert": Good("/api/schedules/coded/revert", {"fields": ["timing"]}),
    "POST /api/schedules/{ref}/disable": Good("/api/schedules/greet/disable", {"note": "for now"}),
    "POST /api/schedules/{ref}/trigger": Good("/api/schedules/greet/trigger", {"force": True}, 201),
    "POST /api/schedules/{ref}/backfill": Good(
        "/api/schedules/backup/backfill",
        {"from": "2026-03-01T00:00:00Z", "until": "2026-03-04T00:00:00Z"},
        201,
    ),
    "POST /api/schedules/{ref}/ping-key": Good("/api/schedules/crontab/ping-key", {"new": True}, 201),
    "POST /api/schedules/{ref}/badge-key": Good("/api/schedules/backup/badge-key", {"new": True}, 201),
    "GET /api/schedules/{ref}/runs": Good("/api/schedules/backup/runs", query={"state": ["queued", "failed"]}),
    "GET /api/schedules/{ref}/why": Good("/api/schedules/backup/why", query={"at": "2026-03-01T03:00:00Z"}),
    "GET /api/schedules/{ref}/next": Good("/api/schedules/backup/next", query={"n": 3}),
    "GET /api/schedules/{ref}/relations": Good("/api/schedules/backup/relations"),
    "GET /api/schedules/{ref}/history": Good("/api/schedules/backup/history", query={"days": 30}),
    "GET /api/timings/preview": Good("/api/timings/preview", query={"text": "weekdays 09:30", "zone": "Europe/Berlin"}),
    "POST /api/timings/preview": Good("/api/timings/preview", {"text": "every 5m", "n": 2}),
    "GET /api/runs": Good("/api/runs", query={"state": "succeeded", "limit": 1}),
    "POST /api/runs": Good("/api/runs", {"work": SHELL, "key": "once", "delay": "1h"}, 201),
    "GET /api/runs/{id}": Good(f"/api/runs/{ENDED}"),
    "GET /api/runs/{id}/output": Good(f"/api/runs/{ENDED}/output", status=206, headers={"Range": "bytes=0-3"}),
    "HEAD /api/runs/{id}/output": Good(f"/api/runs/{ENDED}/output"),
    "GET /api/runs/{id}/lines": Good(f"/api/runs/{ENDED}/lines", query={"after": 1}),
    "POST /api/runs/{id}/cancel": Good(f"/api/runs/{QUEUED}/cancel", {"reason": "not needed"}),
    "POST /api/runs/{id}/retry": Good(f"/api/runs/{ENDED}/retry", status=201),
    "GET /api/lanes": Good("/api/lanes"),
    "GET /api/lanes/{name}": Good("/api/lanes/cron"),
    "PUT /api/lanes/{name}": Good("/api/lanes/mail", {"limit": 3, "rate": "10/m"}),
    "POST /api/lanes/{name}/pause": Good("/api/lanes/cron/pause", {"note": "for now"}),
    "POST /api/lanes/{name}/resume": Good("/api/lanes/cron/resume"),
    "POST /api/lanes/{name}/clear": Good("/api/lanes/main/clear"),
    "GET /api/sessions": Good("/api/sessions", query={"busy": True}),
    "GET /api/sessions/{key}": Good("/api/sessions/chat"),
    "GET /api/sessions/{key}/messages": Good("/api/sessions/chat/messages"),
    "POST /api/sessions/{key}/messages": Good(
        "/api/sessions/chat/messages", {"task": "answer", "payload": {"text": "hi"}, "message_id": "m1"}, 201
    ),
    "GET /api/sessions/{key}/events": Good("/api/sessions/chat/events", query={"limit": 5}),
    "POST /api/sessions/{key}/stop": Good("/api/sessions/chat/stop"),
    "POST /api/sessions/{key}/stop_all": Good("/api/sessions/chat/stop_all"),
    "GET /api/nodes": Good("/api/nodes"),
    "POST /api/nodes/{id}/drain": Good("/api/nodes/node-1/drain"),
    "POST /api/nodes/{id}/resume": Good("/api/nodes/node-1/resume"),
    "GET /api/calendars": Good("/api/calendars"),
    "GET /api/calendars/{name}": Good("/api/calendars/office"),
    "PUT /api/calendars/{name}": Good("/api/calendars/office", {"dates": ["12-24", "2026-12-31"], "note": "closed"}),
    "DELETE /api/calendars/{name}": Good("/api/calendars/spare", status=204),
    "GET /api/projects": Good("/api/projects"),
    "GET /api/projects/{name}": Good("/api/projects/blog"),
    "POST /api/projects": Good("/api/projects", {"name": "shop", "folder": "/tmp", "env": {"A": "b"}}, 201),
    "DELETE /api/projects/{name}": Good("/api/projects/spare", status=204),
    "GET /api/channels": Good("/api/channels"),
    "POST /api/channels": Good(
        "/api/channels",
        {
            "name": "phone",
            "url": "json://example.org/hook",
            "note": "Ann's",
            "quiet": "22:00-07:00",
            "digest": "daily 08:00",
            "zone": "Europe/Berlin",
            "cool_down": "1h",
        },
        201,
    ),
    "GET /api/channels/{name}": Good("/api/channels/ops"),
    "DELETE /api/channels/{name}": Good("/api/channels/spare", status=204, query={"force": True}),
    "POST /api/channels/{name}/test": Good("/api/channels/ops/test"),
    "GET /api/rules": Good("/api/rules"),
    "POST /api/rules": Good(
        "/api/rules",
        {"channel": "ops", "on": ["failed"], "project": "blog", "digest": "daily 08:00", "zone": "UTC"},
        201,
    ),
    "DELETE /api/rules/{id}": Good("/api/rules/1", status=204),
    "GET /api/deliveries": Good("/api/deliveries", query={"channel": "ops", "state": "pending", "limit": 5}),
    "GET /api/incidents": Good("/api/incidents", query={"state": "open", "subject": "shell", "limit": 5}),
    "GET /api/incidents/{id}": Good("/api/incidents/1"),
    "POST /api/incidents/{id}/ack": Good("/api/incidents/1/ack", {"note": "I am on it"}),
    "POST /api/incidents/{id}/rerun": Good("/api/incidents/1/rerun", status=201),
    "GET /api/tasks": Good("/api/tasks"),
    "GET /api/kinds": Good("/api/kinds"),
    "GET /api/logins": Good("/api/logins"),
    "DELETE /api/logins/{id}": Good("/api/logins/1", status=204),
    "GET /api/tokens": Good("/api/tokens"),
    "POST /api/tokens": Good("/api/tokens", {"name": "ci", "role": "operator", "expires": "90d"}, 201),
    "DELETE /api/tokens/{id}": Good("/api/tokens/2", status=204),
    "GET /api/audit": Good("/api/audit", query={"verb": "schedule.add"}),
    "GET /api/overview": Good("/api/overview"),
    "GET /api/timeline": Good(
        "/api/timeline", query={"from": "2026-03-01T00:00:00Z", "to": "2026-03-08T00:00:00Z", "limit": 10}
    ),
}
"""By operation, as the OpenAPI document has them."""
