"""/metrics, /livez, /healthz and /readyz: what Prometheus reads, what load balancers ask, and what neither is told."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from starlette.types import Receive, Scope, Send

from ostinato.clock import SECOND, uptime
from ostinato.engine.watchdog import STEADY, LoopMonitor
from ostinato.errors import StoreUnavailable
from ostinato.execution.registry import Registry
from ostinato.models.access import Role
from ostinato.models.ids import NodeId
from ostinato.models.lane import Lane
from ostinato.models.node import Node, NodeBeat
from ostinato.models.notification import NotificationCounts
from ostinato.models.work import Http
from ostinato.models.work_kinds import KIND_PREFIX
from ostinato.service.metrics import metrics_text
from ostinato.tuning import Tuning
from tests.doors.command_line import eventually
from tests.doors.prometheus_text import read_metrics
from tests.doors.web import BASE, Web, web_on

NOW = datetime(2026, 1, 1, tzinfo=UTC)
AWKWARD = 'say "hi"\\\nto\tyou {a="b"} ä'


@pytest.fixture
def web() -> Iterator[Web]:
    registry = Registry()
    with web_on(registry) as made:
        yield made
        if made.container.engine is not None:
            made.run(made.container.engine.stop(grace=0))
            made.container.engine = None


def start(web: Web) -> None:
    async def begin() -> None:
        web.container.engine = web.container.make_engine()
        await web.container.engine.start()
        await asyncio.sleep(0)  # each service has its first turn

    web.run(begin())


def becomes_well(web: Web, path: str) -> None:
    """Where others keep the machine busy, the loop may truly be blocked for a moment."""
    eventually(lambda: web.anybody().get(path).status_code == 200, f"{path} says 200", 60)


def node(id: str, state: str = "alive") -> Node:
    services = {"ticker": {"up": True, "restarts": 2, "error": None}}
    return Node(NodeId(id), "host", 1, state, 8, 0, (), NOW, NOW, services)


# --- the text ------------------------------------------------------------------------------------------------------


def test_a_label_with_quotes_and_line_ends_is_read_back_as_it_was() -> None:
    counted = {"runs": {AWKWARD: {"succeeded": 3}}}
    metrics = read_metrics(metrics_text([node("n")], {"n": counted}, [Lane(AWKWARD, 4, queued=2)], {"on": 1}))
    runs = metrics["scheduler_task_runs_total"]
    assert runs.value("scheduler_task_runs_total", task=AWKWARD, status="success", node="n") == 3
    assert metrics["scheduler_queue_depth"].value("scheduler_queue_depth", lane=AWKWARD) == 2


def test_a_sum_over_a_family_counts_each_run_once() -> None:
    ends = {"succeeded": 5, "failed": 2, "cancelled": 1, "skipped": 4}
    metrics = read_metrics(metrics_text([], {"n": {"runs": {"mail": ends}}}, [], {}))

    def by(name: str, label: str) -> dict[str, float]:
        return {dict(labels)[label]: value for (_, labels), value in metrics[name].samples.items()}

    assert by("scheduler_task_runs_total", "status") == {"success": 5, "failure": 2}
    assert by("scheduler_runs_ended_total", "state") == ends


def test_a_task_that_a_node_knows_counts_from_zero_on() -> None:
    known = replace(node("n"), tasks=("mail", f"{KIND_PREFIX}copy"))
    lost = replace(node("gone", "lost"), tasks=("mail",))
    metrics = read_metrics(metrics_text([known, lost], {"n": {"runs": {"report": {"failed": 1}}}}, [], {}))
    runs = {
        tuple(dict(labels)[name] for name in ("node", "task", "status")): value
        for (_, labels), value in metrics["scheduler_task_runs_total"].samples.items()
    }
    assert runs == {
        ("n", "mail", "success"): 0,
        ("n", "mail", "failure"): 0,
        ("n", "report", "success"): 0,
        ("n", "report", "failure"): 1,
    }


def test_runs_that_succeeded_with_errors_are_counted_beside_all_that_succeeded() -> None:
    counted = {"runs": {"mail": {"succeeded": 3}}, "with_errors": {"mail": 2}}
    metrics = read_metrics(metrics_text([], {"n": counted}, [], {}))
    with_errors = metrics["scheduler_task_runs_with_errors_total"]
    assert with_errors.value("scheduler_task_runs_with_errors_total", task="mail", node="n") == 2


def test_a_histogram_adds_up_to_its_count() -> None:
    durations = {"mail": {"counts": [1, 0, 2], "sum": 3.5}}
    counted = {"bounds": {"durations": [0.1, 1, 10]}, "durations": durations}
    metric = read_metrics(metrics_text([], {"n": counted}, [], {}))["scheduler_task_duration_seconds"]

    def bucket(le: str) -> float:
        return metric.value("scheduler_task_duration_seconds_bucket", task="mail", node="n", le=le)

    assert [bucket(le) for le in ("0.1", "1", "10", "+Inf")] == [1, 1, 3, 3]
    assert metric.value("scheduler_task_duration_seconds_sum", task="mail", node="n") == 3.5


def test_nodes_are_counted_by_state_and_a_lost_one_has_no_services() -> None:
    metrics = read_metrics(metrics_text([node("a"), node("b", "lost"), node("c", "draining")], {}, [], {}))
    states = {dict(labels)["state"]: value for (_, labels), value in metrics["scheduler_nodes"].samples.items()}
    assert states == {"alive": 1, "draining": 1, "lost": 1}
    up = metrics["scheduler_engine_service_up"]
    assert {dict(labels)["node"] for _, labels in up.samples} == {"a", "c"}


def test_without_anything_to_count_the_answer_is_still_well_formed() -> None:
    read_metrics(metrics_text([], {}, [], {}))


def test_messages_and_incidents_are_counted() -> None:
    counted = {"told": {"phone": {"sent": 3, "retried": 1}}}
    told = NotificationCounts({"failed": 2}, {("phone", "pending"): 4})
    metrics = read_metrics(metrics_text([], {"n": counted}, [], {}, None, told))
    sent = metrics["scheduler_deliveries_total"]
    assert sent.value("scheduler_deliveries_total", channel="phone", outcome="sent", node="n") == 3
    waiting = metrics["scheduler_deliveries_waiting"]
    assert waiting.value("scheduler_deliveries_waiting", channel="phone", state="pending") == 4
    open_now = metrics["scheduler_incidents_open"]
    assert open_now.value("scheduler_incidents_open", kind="failed") == 2
    assert open_now.value("scheduler_incidents_open", kind="late") == 0


# --- served --------------------------------------------------------------------------------------------------------


def test_the_own_node_is_told_as_it_is_now_and_everything_can_be_read(web: Web) -> None:
    start(web)
    services = web.container.services
    web.run(services.schedules.add("backup", "every 1h", Http("GET", "https://example.org/x")))
    answer = web.anybody().get("/metrics")
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    metrics = read_metrics(answer.text)
    assert metrics["scheduler_schedules"].value("scheduler_schedules", state="on") == 1
    assert metrics["scheduler_lane_limit"].value("scheduler_lane_limit", lane="main") == 30
    assert metrics["scheduler_nodes"].value("scheduler_nodes", state="alive") == 1
    assert web.container.engine is not None
    web.container.engine.statistics.started([0])  # after its last beat
    own = read_metrics(web.anybody().get("/metrics").text)["scheduler_start_lateness_seconds"]
    assert own.value("scheduler_start_lateness_seconds_count", node=web.container.engine.id) == 1


def test_another_node_is_told_as_its_last_beat_counted_and_one_that_is_lost_is_not(web: Web) -> None:
    now = web.clock.now()
    counted = '{"runs":{"mail":{"succeeded":3}}}'
    for id, lease in (("near", 60_000_000), ("gone", 1)):
        beat = NodeBeat(NodeId(id), "there", 1, 4, 0, False, (), now, now, now + lease, "{}", counted)
        web.run(web.container.store.nodes.renew(beat))
    web.clock.advance("1s")
    runs = read_metrics(web.anybody().get("/metrics").text)["scheduler_runs_ended_total"]
    assert {dict(labels)["node"]: value for (_, labels), value in runs.samples.items()} == {"near": 3}


def test_metrics_need_a_token_unless_the_client_is_on_this_machine(web: Web) -> None:
    assert web.anybody().get("/metrics").status_code == 200
    assert web.anybody("192.0.2.7").get("/metrics").status_code == 401
    token = web.token(Role.VIEWER)
    far = web.anybody("192.0.2.7", Authorization=f"Bearer {token}")
    assert far.get("/metrics").status_code == 200
    assert web.anybody("192.0.2.7", Authorization="Bearer ost_wrong").get("/metrics").status_code == 401


@pytest.mark.parametrize("header", ["X-Forwarded-For", "Forwarded", "Via", "X-Real-IP", "X-Forwarded-Host"])
def test_what_a_proxy_on_this_machine_passes_on_is_not_from_this_machine(web: Web, header: str) -> None:
    assert web.anybody(**{header: "192.0.2.7"}).get("/metrics").status_code == 401


@pytest.mark.parametrize("settings", [{"hosts": ("jobs.example.org",)}, {"host": "0.0.0.0"}, {"host": "192.0.2.1"}])
def test_where_a_proxy_or_others_may_come_a_client_on_this_machine_needs_a_token_too(
    web: Web, settings: dict[str, Any]
) -> None:
    token = web.token(Role.VIEWER)
    web.set(**settings)
    assert web.anybody().get("/metrics").status_code == 401
    assert web.anybody(Authorization=f"Bearer {token}").get("/metrics").status_code == 200


@pytest.mark.parametrize(("version", "status"), [("1.0", 401), ("1.1", 200)])
def test_a_plain_nginx_is_known_by_how_it_speaks(web: Web, version: str, status: int) -> None:
    """Its defaults: our own address as Host, no word of whom it asks for, and HTTP/1.0."""

    async def speaking(scope: Scope, receive: Receive, send: Send) -> None:
        await web.app({**scope, "http_version": version}, receive, send)

    async def ask() -> int:
        transport = httpx.ASGITransport(speaking, client=("127.0.0.1", 50_000))
        async with httpx.AsyncClient(transport=transport, base_url=BASE) as nginx:
            return (await nginx.get("/metrics", headers={"Connection": "close"})).status_code

    assert web.run(ask()) == status


def test_schedules_add_up_each_in_one_state(web: Web) -> None:
    schedules = web.container.services.schedules
    for name in ("on", "off", "orphaned and off", "finished", "once and over", "paused"):
        web.run(schedules.add(name, "every 1h", Http("GET", "https://example.org/x")))
    for name in ("off", "orphaned and off"):
        web.run(schedules.disable(name))
    for change in (
        "orphaned = 1 WHERE name = 'orphaned and off'",
        "next_at = NULL, remaining = 0, enabled = 0 WHERE name = 'finished'",
        "next_at = NULL WHERE name = 'once and over'",
        "paused_since = next_at, paused_reason = 'over budget' WHERE name = 'paused'",
    ):
        web.sql(f"UPDATE schedules SET {change}")
    metrics = read_metrics(web.anybody().get("/metrics").text)
    counts = {dict(labels)["state"]: value for (_, labels), value in metrics["scheduler_schedules"].samples.items()}
    assert counts == {"on": 2, "off": 1, "broken": 0, "finished": 2, "orphaned": 1}
    assert metrics["scheduler_schedules_paused"].value("scheduler_schedules_paused") == 1


def test_a_process_without_an_engine_is_healthy_and_ready(web: Web) -> None:
    for path in ("/livez", "/healthz", "/readyz"):
        answer = web.anybody("192.0.2.7").get(path)
        assert (answer.status_code, answer.json()) == (200, {"ok": True})


def test_an_engine_whose_service_is_down_is_not_healthy_and_says_which(web: Web) -> None:
    start(web)
    becomes_well(web, "/healthz")
    assert web.container.engine is not None
    service = web.container.engine.watchdog.services["ticker"]
    service.up, service.error = False, "OSError: postgresql://user:secret@host"
    answer = web.anybody().get("/healthz")
    assert answer.status_code == 503
    assert answer.json() == {"ok": False, "reason": "engine service ticker is down"}
    service.up = True


def test_a_restart_is_asked_for_where_one_helps(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    start(web)
    becomes_well(web, "/livez")
    engine = web.container.engine
    assert engine is not None
    monkeypatch.setattr(engine.watchdog, "_own_fault_at", {"pruner": time.monotonic()})
    assert web.anybody().get("/livez").status_code == 200  # runs do not need it
    monkeypatch.setattr(engine.watchdog, "_own_fault_at", {"ticker": time.monotonic()})
    answer = web.anybody().get("/livez")
    assert (answer.status_code, answer.json()["reason"]) == (503, "engine service ticker keeps dying")
    monkeypatch.setattr(engine.watchdog, "_own_fault_at", {"ticker": time.monotonic() - STEADY})
    monkeypatch.setattr(LoopMonitor, "blocked_for", 3.0)
    answer = web.anybody().get("/livez")
    assert (answer.status_code, answer.json()["reason"]) == (503, "the event loop is blocked")


def test_a_node_that_drains_is_healthy_but_not_ready(web: Web) -> None:
    start(web)
    becomes_well(web, "/readyz")
    assert web.container.engine is not None
    web.run(web.container.services.nodes.drain(web.container.engine.id))
    web.run(web.container.engine.lease.renew())
    becomes_well(web, "/healthz")
    answer = web.anybody().get("/readyz")
    assert (answer.status_code, answer.json()["reason"]) == (503, "this node is draining")


def test_a_node_whose_lease_is_gone_is_not_ready(web: Web) -> None:
    start(web)
    assert web.container.engine is not None
    web.run(web.container.store.nodes.leave(web.container.engine.id))
    answer = web.anybody().get("/readyz")
    assert (answer.status_code, answer.json()["reason"]) == (503, "its lease was lost")


def test_a_node_that_cannot_renew_its_lease_is_neither_healthy_nor_ready(
    web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(web)
    assert web.container.engine is not None
    monkeypatch.setattr(web.container.engine.fence, "_uptime", lambda: uptime() + 3_600 * SECOND)
    for path in ("/healthz", "/readyz"):
        answer = web.anybody().get(path)
        assert answer.status_code == 503, path
        assert answer.json()["reason"].startswith("its lease has not been renewed since 20")
    assert web.anybody().get("/livez").status_code == 200  # a restart would not bring the database back


def failing(web: Web, monkeypatch: pytest.MonkeyPatch, call: Callable[..., Awaitable[Any]]) -> None:
    monkeypatch.setattr(web.container.services.nodes, "list", call)


def test_a_database_that_does_not_answer_is_not_ready_and_its_address_is_not_told(
    web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse() -> None:
        raise StoreUnavailable("cannot reach postgresql://user:secret@db.internal/jobs")

    failing(web, monkeypatch, refuse)
    answer = web.anybody().get("/readyz")
    assert answer.status_code == 503
    assert answer.json() == {"ok": False, "reason": "the database does not answer"}
    becomes_well(web, "/healthz")


def test_a_database_that_hangs_is_not_waited_for(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    async def hang() -> None:
        await asyncio.Event().wait()

    failing(web, monkeypatch, hang)
    web.set(tuning=Tuning(readiness_seconds=0.05))
    answer = web.anybody().get("/readyz")
    assert (answer.status_code, answer.json()["reason"]) == (503, "the database did not answer within 0.05 s")
