"""Projects of Django in folders of their own: the example, and what is added to it. Each runs in processes of its own,
because Django's settings are global to a process."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.doors.web_servers import EXAMPLES, WebServer
from tests.transactions.callers import django_database

__all__ = ["DATABASE", "TICKS", "Project", "copy_example", "copy_files"]

DATABASE = "ostinato.db"
TICKS = '''

import os
from pathlib import Path

from ostinato import Every


@register("tick", schedule=Every(seconds=1))
def tick() -> None:
    """Who ran it."""
    with Path("ticks").open("a") as file:
        file.write(f"{os.getpid()}\\n")
'''


class Project:
    """The example in a folder, with its database."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def add(self, path: str, code: str) -> None:
        """Append to a file of it, or make one."""
        with (self.folder / path).open("a") as file:
            file.write(code)

    def use_postgres(self, url: str) -> None:
        """Let Django have its tables there; the ledger follows it."""
        self.add("mysite/settings.py", f"\nDATABASES = {{'default': {django_database(url)!r}}}\n")

    def manage(self, *words: str, stdin: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a command of manage.py, whatever its exit code."""
        return subprocess.run(
            [sys.executable, "-W", "error", "manage.py", *words],
            cwd=self.folder,
            env={**os.environ, **environment},
            input=stdin,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )

    def ok(self, *words: str, stdin: str = "", **environment: str) -> str:
        """What a command prints that has to succeed."""
        done = self.manage(*words, stdin=stdin, **environment)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def shell(self, code: str, **environment: str) -> str:
        """What code prints in `manage.py shell`."""
        return self.ok("shell", "--no-imports", "-c", code, **environment).strip()

    def served(
        self, *words: str, ready: str | None = "/admin/login/", database: str = DATABASE, **environment: str
    ) -> WebServer:
        """It in a server, started by `python -m`."""
        variables = {"DJANGO_SETTINGS_MODULE": "mysite.settings", **environment}
        return WebServer(self.folder, *words, database=database, ready=ready, **variables)

    def ticks(self) -> list[int]:
        """Who ran `tick`, each time."""
        file = self.folder / "ticks"
        return [int(line) for line in file.read_text().split()] if file.exists() else []


def copy_files(folder: Path) -> Project:
    """The example, as a user has it, without its tables."""
    left_out = shutil.ignore_patterns("*.sqlite3*", "*.db*", "__pycache__")
    shutil.copytree(EXAMPLES / "django_app", folder, dirs_exist_ok=True, ignore=left_out)
    return Project(folder)


def copy_example(folder: Path) -> Project:
    """The example, with its tables."""
    project = copy_files(folder)
    project.ok("migrate", "-v", "0")
    return project
