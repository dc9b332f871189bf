"""The environments of the peers: one for each, made on demand with pip, apart from the project's own."""

from __future__ import annotations

import json
import subprocess
import sys
import venv
from pathlib import Path

__all__ = ["OURS", "PEERS", "interpreter", "versions"]

FOLDER = Path(__file__).parent / ".venvs"
PEERS: dict[str, tuple[str, ...]] = {
    "huey": ("huey",),
    "apscheduler": ("apscheduler==3.11.*",),
    "pgqueuer": ("pgqueuer", "asyncpg", "uvloop"),
    "procrastinate": ("procrastinate", "psycopg[binary,pool]"),
}
OURS = Path(sys.executable)
_LIST = """
import json, importlib.metadata as m
print(json.dumps({d.metadata["Name"].lower(): d.version for d in m.distributions()}))
"""


def interpreter(peer: str) -> Path:
    """The Python in which a peer is installed; installs it first if need be."""
    folder = FOLDER / peer
    python = folder / "bin" / "python"
    installed = folder / "installed"
    wanted = "\n".join(PEERS[peer])
    if not installed.exists() or installed.read_text() != wanted:
        print(f"installing {peer} …", file=sys.stderr)
        venv.create(folder, with_pip=True)
        command = [python, "-m", "pip", "install", "-qq", "--disable-pip-version-check", "--no-input", *PEERS[peer]]
        subprocess.run([str(part) for part in command], check=True)
        installed.write_text(wanted)
    return python


def versions(python: Path, names: tuple[str, ...]) -> dict[str, str]:
    """Which versions of these distributions an environment has."""
    answer = subprocess.run([str(python), "-c", _LIST], check=True, capture_output=True, text=True).stdout
    known: dict[str, str] = json.loads(answer)
    return {name: known[name] for name in names if name in known}
