"""What the fields of a work must be. What is wrong is an InvalidInput that names its field and shows a right one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from ostinato.durations import Duration, parse_duration
from ostinato.errors import InvalidInput

__all__ = [
    "check_command",
    "check_env",
    "check_flag_value",
    "check_kind",
    "check_text",
    "check_url",
    "parse_size",
    "processor_seconds",
]


_LARGEST = 10**18
"""Bytes. What was parsed once is read back from what is stored, and must be parsed again."""


def check_command(command: Any, field: str) -> None:
    """A command is a text for a shell, or the program and its arguments as a list."""
    if isinstance(command, str):
        good = bool(command.strip()) and "\0" not in command
    else:
        good = isinstance(command, (list, tuple)) and bool(command) and bool(command[0])
        good = good and all(isinstance(part, str) and "\0" not in part for part in command)
    if not good:
        raise InvalidInput(
            f"{field} cannot be {command!r}", field=field, hint='give "restic backup /srv" or ["restic", "backup"]'
        )


def check_url(url: Any) -> None:
    """An address that can be called."""
    parts = None
    try:
        parts = urlsplit(url) if isinstance(url, str) and url.isprintable() and " " not in url else None
        good = parts is not None and parts.scheme in ("http", "https") and bool(parts.hostname)
        good = good and (parts is None or parts.port is None or parts.port > 0)
    except ValueError:
        good = False
    if not good:
        raise InvalidInput(f"url cannot be {url!r}", field="url", hint="such as https://example.com/hook")
    if parts is not None and (parts.username or parts.password):
        raise InvalidInput(
            "a url with a user and a password would be stored with them",
            field="url",
            hint="give a header instead: Authorization: Basic env:NAME",
        )


def check_env(env: Mapping[str, str]) -> None:
    """Variables that a process can be given."""
    check_kind("env", env, Mapping, 'names and values, such as {"LEVEL": "debug"}')
    for name, value in env.items():
        good = isinstance(name, str) and isinstance(value, str) and bool(name) and "=" not in name
        if not good or "\0" in name + value:
            raise InvalidInput(f"env cannot hold {name!r}", field="env", hint='as in {"LEVEL": "debug"}')


def check_kind(name: str, value: Any, kind: type, hint: str) -> None:
    """A value of this type: what a type checker would have said."""
    if not isinstance(value, kind):
        raise InvalidInput(f"{name} cannot be {value!r}", field=name, hint=f"give {hint}")


def check_text(name: str, value: Any) -> None:
    """Text that says something, or None."""
    if value is not None and (not isinstance(value, str) or not value.strip() or "\0" in value):
        raise InvalidInput(f"{name} cannot be {value!r}", field=name, hint="give text")


def check_flag_value(name: str, value: Any) -> None:
    """What becomes an argument of a command line must not be read as a flag there."""
    check_text(name, value)
    if value is not None and value.startswith("-"):
        raise InvalidInput(f"{name} cannot be {value!r}", field=name, hint="it must not begin with a dash")


def processor_seconds(value: Duration) -> float:
    """A limit of processor time: a second at least."""
    seconds = parse_duration(value, field="cpu").total_seconds()
    if seconds < 1:
        raise InvalidInput(f"cpu cannot be {value!r}", field="cpu", hint="give 1s or more")
    return seconds


def parse_size(value: Any, field: str) -> int:
    """A size in bytes, from a number or text such as 512MB; InvalidInput if it is none."""
    text = str(value).strip().upper().removesuffix("B")
    unit = {"K": 1, "M": 2, "G": 3, "T": 4}.get(text[-1:], 0)
    number = text[:-1] if unit else text
    good = not isinstance(value, bool) and re.fullmatch(r"[0-9]{1,18}(\.[0-9]+)?", number) is not None
    size = int(float(number) * 1024**unit) if good else 0
    if not 0 < size <= _LARGEST:
        raise InvalidInput(f"{field} cannot be {value!r}", field=field, hint="give bytes, or text such as 512MB or 2GB")
    return size
