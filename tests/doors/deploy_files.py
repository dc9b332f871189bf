"""The files of deploy/ as tests read them: units, Dockerfiles, YAML, and what they say of commands and settings."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

from ostinato.config import Settings, load_settings

__all__ = [
    "DEPLOY",
    "ENDING_SECONDS",
    "check_command",
    "dockerfile",
    "documents",
    "environment_of",
    "exec_form",
    "settings_of",
    "unit",
]

DEPLOY = Path(__file__).parents[2] / "deploy"
ENDING_SECONDS = 25
"""What a drain may take beyond the grace, as docs/guides/deployment.md says."""
_NO_SETTINGS = {"OSTINATO_TRUST"}


def unit() -> dict[str, list[str]]:
    """What the unit of systemd says, each name with all its values."""
    found: dict[str, list[str]] = {}
    for line in (DEPLOY / "systemd/ostinato.service").read_text(encoding="utf-8").splitlines():
        name, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            found.setdefault(name, []).append(value)
    return found


def dockerfile() -> list[tuple[str, str]]:
    """Its instructions, in order: the word and the rest, of both stages."""
    text = (DEPLOY / "docker/Dockerfile").read_text(encoding="utf-8")
    whole = re.sub(r"\\\n\s*", "", re.sub(r"(?m)^#.*\n", "", text))
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in whole.splitlines() if line)]


def environment_of(instructions: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The variables of an image."""
    said = [rest for word, rest in instructions if word == "ENV"]
    return dict(pair.split("=", 1) for rest in said for pair in shlex.split(rest))


def documents(name: str) -> list[dict[str, Any]]:
    """The documents of a YAML file."""
    return list(yaml.safe_load_all((DEPLOY / name).read_text(encoding="utf-8")))


def settings_of(variables: Mapping[str, str], folder: Path) -> Settings:
    """The settings that these variables make; each of them must be one, and be taken."""
    ours = {name for name in variables if name.startswith("OSTINATO_")} - _NO_SETTINGS
    assert ours <= {f"OSTINATO_{field.name.upper()}" for field in fields(Settings)}
    return load_settings(folder, dict(variables))


def check_command(words: list[str]) -> None:
    """`ostinato` with these words can be called."""
    from ostinato.cli.main import app

    app.parse_args(words, exit_on_error=False, print_error=False)


def exec_form(text: str) -> list[str]:
    """The words of `["up"]`."""
    found: list[str] = json.loads(text)
    return found
