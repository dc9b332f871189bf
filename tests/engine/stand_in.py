"""The stand-in for an agent's command line, as tests hold it: put in place, and asked how it was called."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from ostinato.agent_clis import BUILT_IN, AgentCli

__all__ = ["StandIn"]

_START = f"""\
#!{sys.executable} -IS
import sys

sys.path.insert(0, {str(Path(__file__).parents[2])!r})
from tests.engine.stand_in_agent import main

main()
"""


class StandIn:
    """An executable in a folder of its own, called `claude` or by the name of another that is known from the start."""

    def __init__(self, home: Path, name: str = "claude") -> None:
        self.home = home
        self.name = name
        home.mkdir()
        self.path = home / name
        self.path.write_text(_START, encoding="utf-8")
        self.path.chmod(0o755)

    @property
    def cli(self) -> AgentCli:
        """The entry of the settings that calls it."""
        cli, program = BUILT_IN[self.name], (str(self.path),)
        return replace(cli, command=program + cli.command[1:], resume=(program + cli.resume[1:]) if cli.resume else ())

    @property
    def calls(self) -> list[dict[str, Any]]:
        """How it was called, in order: argv, prompt, folder, environment, pid."""
        noted = self.home / "calls"
        return [json.loads(line) for line in noted.read_text().splitlines()] if noted.exists() else []

    def forget(self) -> None:
        """All its conversations vanish."""
        for kept in (self.home / "conversations").iterdir():
            kept.unlink()
