"""`app.init_flask(site)`: the app context around each run, and when an engine starts. Real servers are in
test_web_servers.py."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from flask import Flask, current_app

from ostinato import Ostinato
from ostinato.config import Settings

MODULE = """
from flask import Flask, current_app
from ostinato import Ostinato

jobs = Ostinato("sqlite:///jobs.db")
site = Flask(__name__)
site.config["SHOP"] = "open"
jobs.init_flask(site)

@jobs.task(isolation="process")
def apart():
    return current_app.config["SHOP"]
"""


@pytest.fixture
def site() -> Flask:
    site = Flask("shop")
    site.config["SHOP"] = "open"

    @site.get("/")
    def index() -> str:
        return "hello"

    return site


@pytest.fixture
def jobs(site: Flask, tmp_path: Path) -> Iterator[Ostinato]:
    app = Ostinato(settings=Settings(db=f"sqlite:///{tmp_path / 'jobs.db'}"))
    app.init_flask(site)
    yield app
    app.stop(grace=0)


def start_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "ostinato-start"]


def test_tasks_run_in_the_app_context_on_threads_and_on_the_loop(jobs: Ostinato, site: Flask) -> None:
    @jobs.task
    def on_a_thread() -> list[str]:
        return [current_app.config["SHOP"], current_app.name]

    @jobs.task
    async def on_the_loop() -> list[str]:
        return [current_app.config["SHOP"], current_app.name]

    jobs.start()
    assert site.extensions["ostinato"] is jobs
    for task in (on_a_thread, on_the_loop):
        assert task.enqueue().wait(timeout=60).result == ["open", "shop"]
    assert not current_app


def test_a_task_in_a_process_of_its_own_has_the_context_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shop_of_flask.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    import shop_of_flask  # type: ignore[import-not-found]

    try:
        shop_of_flask.jobs.start()
        assert shop_of_flask.apart.enqueue().wait(timeout=60).result == "open"
    finally:
        shop_of_flask.jobs.stop(grace=0)
        del sys.modules["shop_of_flask"]


def test_the_first_request_starts_the_engine_once(jobs: Ostinato, site: Flask) -> None:
    site.config["OSTINATO_ENGINE"] = 1  # what from_prefixed_env() makes of FLASK_OSTINATO_ENGINE=1
    assert jobs._host.container is None
    for _ in range(3):
        assert site.test_client().get("/").text == "hello"
    for thread in start_threads():
        thread.join()
    assert jobs.health()["ok"]
    assert len(jobs.nodes.list()) == 1


@pytest.mark.parametrize(
    "config", [{"TESTING": True}, {"OSTINATO_ENGINE": False}, {"OSTINATO_ENGINE": 0}, {"OSTINATO_ENGINE": "maybe"}]
)
def test_no_request_starts_it_where_the_config_says_so(config: dict[str, object], jobs: Ostinato, site: Flask) -> None:
    site.config.update(config)
    assert site.test_client().get("/").status_code == 200
    assert start_threads() == []
    assert jobs._host.container is None


def test_a_second_flask_app_takes_the_context_of_tasks_with_a_word_in_the_log(
    jobs: Ostinato, site: Flask, caplog: pytest.LogCaptureFixture
) -> None:
    wrapped = site.wsgi_app
    jobs.init_flask(site)
    assert site.wsgi_app is wrapped
    assert caplog.text == ""
    jobs.init_flask(Flask("other"))
    assert "in the app context of Flask app 'shop'; from now on they run in that of 'other'" in caplog.text


def test_a_start_that_fails_is_logged_and_fails_no_request(
    site: Flask, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "not-a-folder").write_text("")
    jobs = Ostinato(settings=Settings(db=f"sqlite:///{tmp_path}/not-a-folder/jobs.db"))
    jobs.init_flask(site)
    assert site.test_client().get("/").status_code == 200
    for thread in start_threads():
        thread.join()
    assert "a later request tries again" in caplog.text
    assert site.test_client().get("/").status_code == 200
    assert start_threads() == []
