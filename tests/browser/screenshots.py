"""`make screenshots`: fills a database with a month of a small shop, starts two nodes on it, and takes the pictures."""

from __future__ import annotations

import shutil
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from tests.browser import shop
from tests.browser.scenario import play
from tests.browser.seed import ZONE, fill_shop
from tests.browser.server import Server
from tests.doors.command_line import Process, eventually

IMAGES = Path(__file__).parents[2] / "docs" / "images"

TOKENS = [("ci", "operator"), ("grafana", "viewer"), ("deploy", "admin")]
MESSAGES = [
    ("chat:ada", "Is the blue lamp in stock?"),
    ("chat:ada", "And by when would it be here?"),
    ("chat:ada", "Two of them, please."),
    ("chat:grace", "My invoice is wrong"),
]


def take_screenshots(folder: Path) -> None:
    fill_shop(folder, datetime.now(UTC))
    shutil.copy(shop.__file__, folder / "shop.py")
    with (
        Server(folder, "--app", "shop:app", zone=ZONE) as server,
        Process(folder, ("worker", "--app", "shop:app"), "worker") as worker,
    ):
        eventually(lambda: "started: " in worker.err, "the second node is there")
        run = server.cli("schedule", "trigger", "reindex-search").strip()
        for name, role in TOKENS:
            server.cli("token", "add", name, "--role", role)
        for key, text in MESSAGES:
            server.cli("session", "send", key, text, "--task", "chat.reply", "--debounce", "0s")
        token = server.cli("token", "add", "ada", "--role", "admin").split()[-1]
        pictures = {"SCREENSHOT_FOLDER": str(IMAGES), "SCREENSHOT_RUN": run, "SCREENSHOT_TOKEN": token}
        play("screenshots", server, folder / "browser", **pictures)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="ostinato-screenshots-") as folder:
        take_screenshots(Path(folder))
    sys.exit(0)
