"""The command lines of AI agents: how each is called and read. Four are known from the start; settings add others.

config.py reads `[agents.NAME]` with `parse_agents`; execution/executors/agent calls and reads what this says.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ostinato.errors import InvalidInput

__all__ = ["BUILT_IN", "CLAUDE", "CODEX", "GEMINI", "OPENCODE", "AgentCli", "parse_agents"]

FIELDS = (
    "answer",
    "conversation",
    "cost",
    "tokens_in",
    "tokens_out",
    "turns",
    "context_tokens",
    "context_window",
    "error",
)
"""What can be found in the JSON of a command line that is not known from the start."""
_OUTPUTS = ("text", "json", "stream-json")
_FORMATS = ("claude", "codex", "gemini", "opencode")
_KNOWN = ("command", "fields", "format", "output", "resume", "speaks_claude")
_HINT = 'write [agents.mine] and command = "mine --prompt {prompt}"'
_PATH = re.compile(r"[^.\s]+(\.[^.\s]+)*")


@dataclass(frozen=True, slots=True)
class AgentCli:
    """How an agent's command line is called. Tokens may hold {prompt}, {system}, {conversation}, {model},
    {report} and {budget} (dollars).

    Nothing of it goes through a shell. Without {prompt} in it, the prompt is written to stdin.
    """

    command: tuple[str, ...]
    resume: tuple[str, ...] = ()
    """The command that continues a conversation; empty if it cannot."""
    output: str = "text"
    """`text`, `json` (one object at the end) or `stream-json` (one object on each line)."""
    speaks_claude: bool = False
    """Whether it takes the flags of Claude Code, which are then added."""
    format: str = "claude"
    """Whose events `stream-json` are: `claude`, `codex`, `gemini` or `opencode`."""
    fields: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Where things are in its JSON, by their names in FIELDS; empty for one that prints a known format."""
    login: str = "log in to it as the user that runs the engine, or set its API key"
    """How a person logs in."""
    install: str | None = None
    """The command that installs it."""


CLAUDE = AgentCli(
    ("claude",),
    output="stream-json",
    speaks_claude=True,
    login="run 'claude' and type /login as the user that runs the engine, or set CLAUDE_CODE_OAUTH_TOKEN "
    "(from 'claude setup-token') or ANTHROPIC_API_KEY",
    install="npm install -g @anthropic-ai/claude-code",
)
_CODEX = "codex exec --json --skip-git-repo-check --model {model}"
CODEX = AgentCli(
    tuple(f"{_CODEX} -".split()),
    resume=tuple(f"{_CODEX} resume {{conversation}} -".split()),
    output="stream-json",
    format="codex",
    login="run 'codex login' as the user that runs the engine, or set CODEX_API_KEY",
    install="npm install -g @openai/codex",
)
_GEMINI = "gemini --output-format stream-json --model {model}"
GEMINI = AgentCli(
    tuple(_GEMINI.split()),
    resume=tuple(f"{_GEMINI} --resume {{conversation}}".split()),
    output="stream-json",
    format="gemini",
    login="run 'gemini' and log in as the user that runs the engine, or set GEMINI_API_KEY",
    install="npm install -g @google/gemini-cli",
)
_OPENCODE = "opencode run --format json --model {model}"
OPENCODE = AgentCli(
    tuple(_OPENCODE.split()),
    resume=tuple(f"{_OPENCODE} --session {{conversation}}".split()),
    output="stream-json",
    format="opencode",
    login="run 'opencode auth login' as the user that runs the engine, or set the API key of its provider",
    install="npm install -g opencode-ai",
)
BUILT_IN: Mapping[str, AgentCli] = {"claude": CLAUDE, "codex": CODEX, "gemini": GEMINI, "opencode": OPENCODE}
"""What can be named without any setting."""


def parse_agents(value: Any) -> dict[str, AgentCli]:
    """The tables [agents.NAME] of the settings; one of a built-in name changes single fields of it."""
    if not isinstance(value, Mapping):
        raise InvalidInput(f"agents cannot be {value!r}", field="agents", hint=_HINT)
    return {name: cli if isinstance(cli, AgentCli) else _agent(name, cli) for name, cli in value.items()}


def _agent(name: str, given: Any) -> AgentCli:
    place = f"agents.{name}"
    if not isinstance(given, Mapping) or not given.keys() <= set(_KNOWN):
        raise InvalidInput(
            f"{place} cannot be {given!r}", field=place, hint=f"its fields are {', '.join(_KNOWN)}; {_HINT}"
        )
    base = BUILT_IN.get(name, AgentCli(()))
    changes: dict[str, Any] = {
        what: _tokens(f"{place}.{what}", given[what]) for what in ("command", "resume") if what in given
    }
    if "command" in given and "resume" not in given:
        changes["resume"] = ()  # that of the built-in one would call another program, or with other rights
    for what, allowed in (("output", _OUTPUTS), ("format", _FORMATS), ("speaks_claude", (True, False))):
        if what in given:
            changes[what] = _one_of(f"{place}.{what}", given[what], allowed)
    if "fields" in given:
        changes["fields"] = _fields(f"{place}.fields", given["fields"])
    cli = replace(base, **changes)
    if not cli.command:
        raise InvalidInput(f"{place} has no command", field=place, hint=_HINT)
    _check_format(name, given, cli)
    return cli


def _check_format(name: str, given: Mapping[str, Any], cli: AgentCli) -> None:
    """The format of its JSON is said, and only once."""
    place = f"agents.{name}"
    if cli.fields and ("format" in given or cli.output == "text"):
        raise InvalidInput(
            f"{place} has fields, but " + ("a format as well" if "format" in given else "prints text"),
            field=place,
            hint='fields say where things are in JSON of its own: set output = "json" or "stream-json", and no format',
        )
    is_known = name in BUILT_IN or cli.speaks_claude or "format" in given or cli.fields
    if cli.output == "stream-json" and not is_known:
        raise InvalidInput(
            f"{place} prints stream-json, but not in which format",
            field=place,
            hint=f"set format to {', '.join(_FORMATS[:-1])} or {_FORMATS[-1]}, "
            'or say where things are: fields = { answer = "result.text" }',
        )


def _one_of(place: str, value: Any, allowed: tuple[Any, ...]) -> Any:
    if not any(type(value) is type(each) and value == each for each in allowed):
        names = [str(each).lower() for each in allowed]
        raise InvalidInput(
            f"{place} cannot be {value!r}", field=place, hint=f"it is {', '.join(names[:-1])} or {names[-1]}"
        )
    return value


def _fields(place: str, given: Any) -> dict[str, tuple[str, ...]]:
    """The paths to what its JSON says, each as the names of keys and the numbers of items on the way."""
    hint = f'write fields = {{ answer = "choices.0.text" }}; the names are {", ".join(FIELDS)}'
    if not isinstance(given, Mapping) or not given.keys() <= set(FIELDS):
        raise InvalidInput(f"{place} cannot be {given!r}", field=place, hint=hint)
    if "answer" not in given:
        raise InvalidInput(f"{place} does not say where the answer is", field=place, hint=hint)
    for name, path in given.items():
        if not isinstance(path, str) or not _PATH.fullmatch(path):
            raise InvalidInput(
                f"{place}.{name} cannot be {path!r}",
                field=place,
                hint='give keys and the numbers of items with dots between, such as "choices.0.text"',
            )
    return {name: tuple(path.split(".")) for name, path in given.items()}


def _tokens(place: str, value: Any) -> tuple[str, ...]:
    """A command as its tokens; a text is split as a shell would, and nothing in it is ever given to one."""
    try:
        tokens = shlex.split(value) if isinstance(value, str) else list(value)
    except (TypeError, ValueError):
        tokens = []
    if not tokens or not all(isinstance(token, str) for token in tokens):
        raise InvalidInput(
            f"{place} cannot be {value!r}", field=place, hint="write it as on a command line, or as a list"
        )
    return tuple(tokens)
