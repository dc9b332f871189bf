"""The trace of a request and of a script reaches the runs that they ask for; and nothing needs OpenTelemetry."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from ostinato.api.app import create_metrics_app
from tests.doors.command_line import CommandLine
from tests.doors.web import BASE, Client, Web
from tests.spans import Spans, id_of, spans

__all__ = ["spans"]

ID = "0af7651916cd43dd8448eb211c80319c"
PARENT = f"00-{ID}-b7ad6b7169203331-01"
TASK = {"kind": "function", "task": "hello"}
SCHEDULE = {"name": "report", "timing": "every 1h", "work": TASK}


def test_a_request_carries_its_trace_to_the_runs_that_it_asks_for(admin: Client) -> None:
    headers = {"traceparent": PARENT, "tracestate": "a=b"}
    assert admin.post("/api/schedules", SCHEDULE).status_code == 201
    made = [
        admin.post("/api/runs", {"work": TASK}, headers=headers),
        admin.post("/api/schedules/report/trigger", headers=headers),
        admin.post("/api/sessions/dm/messages", {"payload": 1, "task": "hello"}, headers=headers),
    ]
    assert [answer.status_code for answer in made] == [201] * 3
    admin.post("/api/runs/1/cancel")
    made.append(admin.post("/api/runs/1/retry", headers=headers))
    runs = [admin.get(answer.headers["location"]).json() for answer in made]
    assert [run["trace_id"] for run in runs] == [ID] * 4
    assert admin.get("/api/runs").json()["items"][0]["trace_id"] == ID


def test_a_header_that_is_no_trace_is_none(admin: Client) -> None:
    for headers in (
        [("traceparent", "nonsense")],
        [("traceparent", PARENT), ("traceparent", PARENT)],
        [("tracestate", "a=b")],
        [],
    ):
        answer = admin.post("/api/runs", {"work": TASK}, headers=headers)
        assert (answer.status_code, answer.json()["trace_id"]) == (201, None)


def test_what_a_request_enqueues_is_a_span_of_the_trace_of_its_client(admin: Client, spans: Spans) -> None:
    run = admin.post("/api/runs", {"work": TASK}, headers={"traceparent": PARENT}).json()
    assert id_of(spans.one("enqueue hello")) == run["trace_id"] == ID


SECRET = "secret-key-of-a-ping"
HIDDEN = (f"/ping/{SECRET}", f"/badge/{SECRET}.svg", f"/login?code={SECRET}", f"/login/?code={SECRET}")
PROBES = ("/livez", "/healthz", "/readyz", "/metrics")


def test_no_span_tells_a_secret_of_an_address_and_probes_make_none(web: Web, admin: Client, spans: Spans) -> None:
    for path in (*HIDDEN, *PROBES):
        admin.get(path)
    transport = httpx.ASGITransport(create_metrics_app(web.container), client=("127.0.0.1", 50_000))
    worker = httpx.AsyncClient(transport=transport, base_url=BASE)
    answers = [web.run(worker.get(path)) for path in PROBES]
    web.run(worker.aclose())
    assert 200 in {answer.status_code for answer in answers}
    assert not any(SECRET in span.to_json() for span in spans.all)
    assert [span.name for span in spans.all] == []


def test_a_command_in_a_script_that_is_traced_belongs_to_its_trace(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEPARENT", PARENT)
    assert cli.ok("exec", "--shell", "echo $TRACEPARENT").out == f"{PARENT}\n"
    assert cli.ok("run", "show", "1", "--json").json["trace_id"] == ID
    assert ID in cli.ok("run", "show", "1").out
    cli.ok("schedule", "add", "report", "every 1h", "--shell", "true")
    triggered = cli.ok("schedule", "trigger", "report", "--json").json
    assert triggered["trace_id"] == ID
    monkeypatch.delenv("TRACEPARENT")
    assert cli.ok("run", "retry", "1", "--json").json["trace_id"] is None


WITHOUT = """
import sys

asked = []


class NotInstalled:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "opentelemetry":
            asked.append(name)
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, NotInstalled())

from ostinato import Ostinato, Shell
from ostinato.testing import drain
from ostinato.trace_context import carrying

app = Ostinato("sqlite://:memory:", tz="UTC")


@app.task("inner")
async def inner() -> None:
    pass


@app.task("job")
def job() -> int:
    return inner.enqueue().id


app.schedules.add("report", "every 1s", job)
with carrying({"traceparent": "PARENT"}):
    traced = job.enqueue()
    shell = app.enqueue(Shell("echo $TRACEPARENT"))
plain = job.enqueue()
drain(app)
print(traced.get().trace_id, app.runs.get(traced.get().result).trace_id, plain.get().trace_id)
print(app.runs.output(shell.id), end="")
app.stop()
print(asked, [name for name in sys.modules if name.startswith("opentelemetry")])
"""


def test_without_opentelemetry_nothing_is_missing_and_nobody_looks_for_it(tmp_path: Path) -> None:
    code = WITHOUT.replace("PARENT", PARENT, 1)
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, check=False, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [f"{ID} {ID} None", PARENT, "[] []"]
