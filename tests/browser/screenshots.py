"""`make screenshots`: fills a database with a month of a small shop, starts two nodes on it, and takes the pictures."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from ostinato import Agent, Ostinato, RunHandle
from tests.browser import shop, shop_agent
from tests.browser.message_picture import message_html
from tests.browser.scenario import play
from tests.browser.seed import ZONE, fill_shop
from tests.browser.server import Server
from tests.doors.command_line import Process, eventually
from tests.engine.http_server import answer, serving

IMAGES = Path(__file__).parents[2] / "docs" / "images"

TOKENS = [("ci", "operator"), ("grafana", "viewer"), ("deploy", "admin")]
CONVERSATION = [
    "Is the blue lamp in stock, and by when would it be here?",
    "Hm, the red one then.",
    "No, sorry: two of the blue ones, please.",
]


def converse(folder: Path) -> None:
    """A question that is answered, and one that is interrupted by the next, which the agent works on."""
    app = Ostinato(f"sqlite:///{folder / 'ostinato.db'}", tz=ZONE)
    chat = partial(app.sessions.send, "chat:ada", agent=Agent(model="opus"), project="shop", debounce=0)
    lamp, red, blue = CONVERSATION
    chat(lamp).wait(timeout="1m")
    _is_begun(chat(red))
    _is_begun(chat(blue, mode="interrupt"))
    app.sessions.send("chat:grace", "My invoice is wrong", task="chat.reply", debounce=0)
    app.stop()


def _is_begun(run: RunHandle[Any]) -> None:
    eventually(lambda: run.get().state == "running", "the agent is at it")


def fail_and_tell(server: Server, phone: str) -> None:
    """A schedule that fails twice, of which a channel is told and a second one cannot be."""
    server.cli("notify", "add", "phone", phone, "--quiet", "22:00-22:01", "--note", "who is on call")
    server.cli("notify", "add", "ops-mail", "mailtos://ops:secret@mail.example.invalid", "--digest", "daily 08:00")
    server.cli("notify", "rule", "add", "--all", "ops-mail")
    command = "echo 'rsync: connection to the warehouse timed out' >&2; exit 30"
    given = ("--shell", command, "--retry", "0", "--notify", "phone", "--project", "shop")
    server.cli("schedule", "add", "reserve-stock", "every 1h", *given)
    for times in (1, 2):
        server.cli("schedule", "trigger", "reserve-stock")
        failed = partial(_has_failed, server, times)
        eventually(failed, "the incident counts it")
    eventually(lambda: "sent" in server.cli("notify", "log"), "the phone was told")


def _has_failed(server: Server, times: int) -> bool:
    return [incident["count"] for incident in json.loads(server.cli("incident", "ls", "--json"))] == [times]


def take_screenshots(folder: Path) -> None:
    fill_shop(folder, datetime.now(UTC))
    shutil.copy(shop.__file__, folder / "shop.py")
    agent = folder / "claude"
    agent.write_text(f"#!{sys.executable} -IS\n{Path(shop_agent.__file__).read_text()}")
    agent.chmod(0o755)
    (folder / "ostinato.toml").write_text(
        f'notify_allow = ["127.0.0.1"]\n[agents.claude]\ncommand = {json.dumps([str(agent)])}\n'
    )
    with (
        serving() as phone,
        Server(folder, "--app", "shop:app", zone=ZONE) as server,
        Process(folder, ("worker", "--app", "shop:app"), "worker") as worker,
    ):
        phone.on("/phone", answer())
        eventually(lambda: "started: " in worker.err, "the second node is there")
        run = server.cli("schedule", "trigger", "reindex-search").strip()
        for name, role in TOKENS:
            server.cli("token", "add", name, "--role", role)
        fail_and_tell(server, f"json://127.0.0.1:{phone.port}/phone")
        converse(folder)
        token = server.cli("token", "add", "ada", "--role", "admin").split()[-1]
        pictures = {"SCREENSHOT_FOLDER": str(IMAGES), "SCREENSHOT_RUN": run, "SCREENSHOT_TOKEN": token}
        pictures["SCREENSHOT_MESSAGE"] = message_html()
        play("screenshots", server, folder / "browser", **pictures)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="ostinato-screenshots-") as folder:
        take_screenshots(Path(folder))
    sys.exit(0)
