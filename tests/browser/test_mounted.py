"""The page in another app, in a real browser: the examples of FastAPI and Starlette under uvicorn."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

from tests.browser.scenario import BOUNDED
from tests.doors.command_line import PROGRAM
from tests.doors.test_web_servers import uvicorn
from tests.doors.web_servers import WebServer

pytestmark = BOUNDED


class MountedPage:
    """Such an app, as a scenario sees it."""

    def __init__(self, server: WebServer, database: str) -> None:
        self._server = server
        self._database = database
        self.url = server.url

    def login_link(self) -> str:
        port = self.url.rpartition(":")[2]
        return self.cli("login", "--db", self._database, "--port", port, "--prefix", "/jobs").strip()

    def cli(self, *argv: str) -> str:
        environment = {**os.environ, "NO_COLOR": "1"}
        done = subprocess.run(
            [*PROGRAM, *argv], cwd=self._server.folder, env=environment, capture_output=True, text=True, check=True
        )
        return done.stdout

    def log(self) -> str:
        return self._server.log()

    def touch(self, name: str) -> None:
        (self._server.folder / name).touch()

    def start(self) -> None:
        raise AssertionError("it is started once")

    stop = start


def test_a_mounted_page_works_under_its_prefix_with_the_login_of_its_app(
    tmp_path: Path, play: Callable[..., None]
) -> None:
    with uvicorn(tmp_path, "fastapi_app") as server:
        play("mounted", MountedPage(server, "fastapi.db"))


def test_a_mounted_page_has_logins_of_its_own_where_its_app_has_none(tmp_path: Path, play: Callable[..., None]) -> None:
    with uvicorn(tmp_path, "starlette_app") as server:
        play("mounted-login", MountedPage(server, "starlette.db"))
