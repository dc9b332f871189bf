"""Commands as people type them on a phone. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ostinato.errors import InvalidInput

__all__ = ["Command", "NewFromChat", "name_for", "names_bot", "parse_command", "parse_new_schedule"]

_COMMAND = re.compile(r"/([A-Za-z0-9_]+)(?:@(\w+))?(?:\s+|$)(.*)", re.DOTALL)
_OPTION = re.compile(r"(?:--|[—–])(\w+)(?:[ =]|\s|$)\s*")
"""Phones make one dash of two."""
_WORD = re.compile(r"\S+")
_QUOTES = {'"': '"', "'": "'", "“": "”“", "”": "”", "„": "“”", "«": "»", "‘": "’", "`": "`"}  # noqa: RUF001
"""And they make quotes beautiful."""
_USAGE = '/schedule add [--type agent|shell] [--once] [--project P] "*/5 * * * *" text'
_LONGEST_NAME = 40


@dataclass(frozen=True, slots=True)
class Command:
    """`/name rest`."""

    name: str
    rest: str
    is_addressed: bool = False
    """Whether it names the bot: /name@bot."""


@dataclass(frozen=True, slots=True)
class NewFromChat:
    """What `/schedule add` asks for."""

    timing: str
    text: str
    kind: str = "agent"
    once: bool = False
    project: str | None = None
    name: str | None = None
    zone: str | None = None


def parse_command(text: str, bot: str) -> Command | None:
    """The command that a text is; None if it is none, or none for this bot."""
    found = _COMMAND.fullmatch(text.strip())
    if found is None or (found[2] is not None and found[2].lower() != bot.lower()):
        return None
    return Command(found[1].lower(), found[3].strip(), is_addressed=found[2] is not None)


def names_bot(text: str, bot: str) -> bool:
    """Whether a text mentions the bot."""
    return bool(bot) and re.search(rf"@{re.escape(bot)}\b", text, re.IGNORECASE) is not None


def parse_new_schedule(rest: str) -> NewFromChat:
    """Options, the timing in quotes, and the prompt or the command; InvalidInput with the usage if it is not that."""
    given: dict[str, str] = {}
    once = False
    while (option := _OPTION.match(rest)) is not None:
        name, rest = option[1].lower(), rest[option.end() :]
        if name == "once":
            once = True
        elif name in ("type", "project", "name", "tz") and (word := _WORD.match(rest)) is not None:
            given[name], rest = word[0], rest[word.end() :].lstrip()
        else:
            raise InvalidInput(f"--{name} cannot be read", field=name, hint=f"write {_USAGE}")
    kind = given.get("type", "agent")
    if kind not in ("agent", "shell"):
        raise InvalidInput(f"--type cannot be {kind!r}", field="type", hint="it is agent or shell")
    timing, text = _quoted(rest)
    return NewFromChat(timing, text, kind, once, given.get("project"), given.get("name"), given.get("tz"))


def _quoted(rest: str) -> tuple[str, str]:
    ends = _QUOTES.get(rest[:1], "")
    end = next((at for at, letter in enumerate(rest[1:], 1) if letter in ends), None)
    timing, text = ("", "") if end is None else (rest[1:end].strip(), rest[end + 1 :].strip())
    if not timing or not text:
        raise InvalidInput("a schedule needs a timing in quotes, and a text", field="timing", hint=f"write {_USAGE}")
    return timing, text


def name_for(text: str) -> str:
    """A name for a schedule of this text: its first words."""
    words = re.findall(r"\w+", text.lower())
    name = ""
    for word in words:
        if name and len(name) + len(word) + 1 > _LONGEST_NAME:
            break
        name = f"{name}-{word}"[: _LONGEST_NAME + 1] if name else word[:_LONGEST_NAME]
    return name or "from-chat"
