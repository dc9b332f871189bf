"""The stand-in for an agent's command line, as tests hold it: put in place, and asked how it was called."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from ostinato.config import CLAUDE, AgentCli
from tests.engine import stand_in_agent

__all__ = ["StandIn"]


class StandIn:
    """An executable called `claude` in a folder of its own."""

    def __init__(self, home: Path) -> None:
        self.home = home
        home.mkdir()
        self.path = home / "claude"
        source = Path(stand_in_agent.__file__).read_text(encoding="utf-8")
        self.path.write_text(f"#!{sys.executable} -IS\n{source}", encoding="utf-8")
        self.path.chmod(0o755)

    @property
    def cli(self) -> AgentCli:
        """The entry of the settings that calls it."""
        return replace(CLAUDE, command=(str(self.path),))

    @property
    def calls(self) -> list[dict[str, Any]]:
        """How it was called, in order: argv, prompt, folder, environment."""
        noted = self.home / "calls"
        return [json.loads(line) for line in noted.read_text().splitlines()] if noted.exists() else []

    def forget(self) -> None:
        """All its conversations vanish."""
        for kept in (self.home / "conversations").iterdir():
            kept.unlink()
