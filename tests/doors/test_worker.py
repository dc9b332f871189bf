"""A real `ostinato worker`: its metrics and health over HTTP, and SIGUSR1, which starts it anew in place."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from ostinato import METRICS_CONTENT_TYPE, Function, Ostinato, Shell
from ostinato.cli.restart import Launch
from tests.doors.command_line import CommandLine, Process, eventually
from tests.doors.prometheus_text import read_metrics

SHOP = """
import asyncio, atexit, os
from pathlib import Path
from ostinato import Ostinato

HERE = Path.cwd()
app = Ostinato("sqlite:///jobs.db")
atexit.register((HERE / "left").touch)
os.chdir("/")
was = os.environ.get("CHANGED")
os.environ["CHANGED"] = "by the code"
os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


@app.task("version", retry=0)
def version():
    return ["first", was]


@app.task("hold", retry=0)
async def hold(until):
    while not (HERE / until).exists():
        await asyncio.sleep(0.02)


@app.task("fail", retry=0)
def fail():
    raise ValueError("no good")
"""


class Shop:
    """The worker, and the database that it shares with the test."""

    def __init__(self, folder: Path, process: Process, app: Ostinato) -> None:
        self.folder = folder
        self.process = process
        self.app = app

    def result(self, task: str) -> object:
        return self.app.runs.wait(self.enqueue(task), timeout=60).result

    def enqueue(self, task: str, *args: object) -> int:
        return self.app.enqueue(Function(task, list(args)), retry=0).id

    def hold(self, until: str) -> int:
        """A run that goes on until there is such a file."""
        id = self.enqueue("hold", until)
        eventually(lambda: self.app.runs.get(id).state == "running", "it is held")
        return id

    def restart(self, version: str) -> None:
        source = self.folder / "shop.py"
        source.write_text(re.sub(r'"first.*?"', f'"{version}"', source.read_text()))
        self.process.signal(signal.SIGUSR1)

    def get(self, path: str) -> httpx.Response:
        address = re.findall(r"metrics at (http://\S+)/metrics", self.process.err)[-1]
        return httpx.get(f"{address}{path}", timeout=60)


def wrong_requests(metrics: httpx.URL) -> list[tuple[str, httpx.URL]]:
    """With methods that there are not at these addresses, in `up` neither."""
    return [("POST", metrics), ("HEAD", metrics.copy_with(path="/livez")), ("DELETE", metrics)]


@pytest.fixture
def shop(cli: CommandLine) -> Iterator[Shop]:
    (cli.folder / "shop.py").write_text(SHOP)
    app = Ostinato(f"sqlite:///{cli.folder / 'jobs.db'}")
    try:
        with cli.start("worker", "--app", "shop:app", "--metrics", "127.0.0.1:0") as process:
            eventually(lambda: "schedules 0" in process.err, "the worker is ready")
            yield Shop(cli.folder, process, app)
    finally:
        app.stop(grace=0)


def test_a_worker_tells_its_metrics_and_starts_anew_in_place(shop: Shop) -> None:
    process = shop.process
    assert shop.result("version") == ["first", None]
    failed = shop.app.runs.wait(shop.enqueue("fail"), timeout=60)
    assert failed.state == "failed"

    answer = shop.get("/metrics")
    assert (answer.status_code, answer.headers["content-type"]) == (200, METRICS_CONTENT_TYPE)
    runs = read_metrics(answer.text)["scheduler_task_runs_total"]
    counted = {
        tuple(dict(labels)[key] for key in ("task", "status")): value for (_, labels), value in runs.samples.items()
    }
    assert counted["version", "success"] == counted["fail", "failure"] == 1
    assert [shop.get(path).status_code for path in ("/healthz", "/readyz", "/", "/api/runs")] == [200, 200, 404, 404]
    assert httpx.get(str(answer.url), headers={"Host": "evil.example"}, timeout=60).status_code == 421

    wrong = {httpx.request(method, url, timeout=60).status_code for method, url in wrong_requests(answer.url)}
    assert wrong == {405}
    assert "Traceback" not in process.err.partition("no good")[0]

    good = (shop.folder / "shop.py").read_text()
    (shop.folder / "shop.py").write_text(good + "def broken(:\n")
    process.signal(signal.SIGUSR1)
    eventually(lambda: "not starting anew" in process.err, "the trial has failed")
    assert "importing 'shop' raised SyntaxError" in process.err
    assert "draining" not in process.err
    assert shop.get("/readyz").status_code == 200
    (shop.folder / "shop.py").write_text(good)

    settings = shop.folder / "ostinato.toml"
    settings.write_text('tls_cert = "nowhere.pem"\ntls_key = "nowhere.key"\n')
    process.signal(signal.SIGUSR1)
    eventually(lambda: "nowhere.pem: it cannot be read" in process.err, "the trial has failed again")
    assert "draining" not in process.err
    settings.unlink()

    assert shop.app.enqueue(Shell("true")).wait(60).state == "succeeded"  # from now on there is a child, the guard
    this = psutil.Process(process.pid)
    assert this.children()
    held = shop.hold("release")
    shop.restart("second-version")
    eventually(lambda: "draining to start anew" in process.err, "it drains")
    process.signal(signal.SIGUSR1)
    eventually(lambda: shop.get("/readyz").status_code == 503, "it says that it drains")
    assert shop.get("/healthz").status_code == 200
    assert shop.app.runs.get(held).state == "running"
    (shop.folder / "release").touch()
    eventually(lambda: process.err.count("schedules 0") == 2, "it has started anew")
    assert shop.app.runs.get(held).state == "succeeded"
    assert shop.result("version") == ["second-version", None]
    (node,) = shop.app.nodes.list()
    assert node.pid == process.pid
    assert (shop.folder / "left").exists()
    assert this.children() == []
    assert len([one for one in this.net_connections() if one.status == psutil.CONN_LISTEN]) == 1
    assert shop.get("/readyz").status_code == 200

    shop.hold("at-last")
    process.signal(signal.SIGUSR1)
    eventually(lambda: process.err.count("draining to start anew") == 2, "it drains again")
    process.signal(signal.SIGTERM)
    eventually(lambda: "it will not start anew" in process.err, "it hears that it shall end")
    (shop.folder / "at-last").touch()
    assert process.wait() == 0
    assert process.err.endswith("stopped\n")
    assert process.err.count("drained: starting anew") == 1


def test_a_restart_that_is_asked_for_before_the_start_ends_nothing() -> None:
    before = signal.signal(signal.SIGUSR1, signal.SIG_DFL)
    try:
        Launch.of_this_process()
        assert callable(signal.getsignal(signal.SIGUSR1))  # and not SIG_IGN, which what the app starts would inherit
    finally:
        signal.signal(signal.SIGUSR1, before)


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("0.0.0.0:0", "cannot listen at 0.0.0.0: without TLS"),
        ("nowhere", "metrics cannot be 'nowhere'"),
    ],
)
def test_where_metrics_cannot_be_served_is_told(cli: CommandLine, address: str, told: str) -> None:
    answer = cli("worker", "--metrics", address)
    assert answer.code == 2
    assert told in answer.err
