"""What an agent's command line is called with, pure: its arguments, its prompt and its system prompt.

executor.py starts what this says. Nothing here goes through a shell, and nothing is formatted: the placeholders of a
template are replaced as text, once, so that a prompt full of braces stays what it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from ostinato.agent_clis import AgentCli
from ostinato.models.work import Agent

__all__ = [
    "BUILT_IN_PROMPT",
    "CHAT_PROMPT",
    "Invocation",
    "can_continue",
    "invocation",
    "knows_budget",
    "prompt_text",
    "system_text",
]

BUILT_IN_PROMPT = """\
You run unattended, as run {run}: nobody can answer questions meanwhile.
Your schedule is {schedule}, and this run of it was due at {due_local}.
It is {now_local} now, in the zone {zone}: times without a zone are meant in this one.
When you are done, write a short report in Markdown to the file {report}: what you did, what you found, what a person \
should know. It is kept with the run, and the file is removed.
"""

CHAT_PROMPT = """\
You answer messages in the session {session}, as run {run}: what you say last is the answer that is sent back.
Whoever wrote them cannot answer while you work; if you have to ask something, ask it in your answer.
It is {now_local} now, in the zone {zone}: times without a zone are meant in this one.
"""
"""The same for a message to a session."""

_PLACEHOLDER = re.compile(r"\{(prompt|conversation|model|report|system|budget)\}")
_IN_SYSTEM = re.compile(r"\{(report|run|schedule|due_at|due_local|now_local|zone|session)\}")
_FLAG = re.compile(r"--?[A-Za-z][\w-]*")


@dataclass(frozen=True, slots=True)
class Invocation:
    """One call of an agent's command line."""

    command: list[str]
    stdin: bytes
    conversation: str | None
    """The id that it was told to use, as far as it was told one."""
    is_continued: bool


def can_continue(cli: AgentCli) -> bool:
    """Whether it can go on with a conversation that it had before."""
    return cli.speaks_claude or bool(cli.resume)


def knows_budget(cli: AgentCli) -> bool:
    """Whether it can be told what a run may cost."""
    return cli.speaks_claude or any("{budget}" in token for token in cli.command)


def system_text(template: str, values: Mapping[str, str | None], extra: str | None) -> str:
    """The text for the system prompt. A line of the template that names something that is not there is left out."""
    lines = template.splitlines()
    kept = [line for line in lines if all(values.get(name) is not None for name in _IN_SYSTEM.findall(line))]
    text = "\n".join(_IN_SYSTEM.sub(lambda found: values[found[1]] or "", line) for line in kept).strip()
    return "\n\n".join(part for part in (text, (extra or "").strip()) if part)


def prompt_text(prompt: str, gate: Any) -> str:
    """The prompt, with what the gate gave behind it."""
    if gate is None:
        return prompt
    data = msgspec.json.format(msgspec.json.encode(gate), indent=2).decode()
    return f"{prompt}\n\nThe gate script that ran just before you gave this data, as JSON:\n\n```json\n{data}\n```\n"


def invocation(
    cli: AgentCli,
    work: Agent,
    *,
    prompt: str,
    system: str,
    report: str | None,
    new: str,
    resumed: str | None,
    allowance: float | None,
) -> Invocation:
    """How to call it: in the new conversation of the id `new`, or in the `resumed` one."""
    template = cli.resume if resumed is not None and cli.resume else cli.command
    named = {name for token in template for name in _PLACEHOLDER.findall(token)}
    if system and not cli.speaks_claude and "system" not in named:
        prompt = f"{system}\n\n{prompt}"
    values = {
        "prompt": prompt,
        "conversation": resumed or new,
        "model": work.model,
        "report": report,
        "system": system or None,
        "budget": None if allowance is None else _dollars(allowance),
    }
    command = _filled(template, values)
    if cli.speaks_claude:
        command += _claude_flags(cli, work, named, system, new, resumed, allowance)
    is_told = cli.speaks_claude or "conversation" in named
    # A command that continues without an id, such as "the last one", goes by any.
    goes_by_any = bool(cli.resume) and not any("{conversation}" in token for token in cli.resume)
    return Invocation(
        command,
        b"" if "prompt" in named else prompt.encode("utf-8", "backslashreplace"),
        (resumed or new) if is_told or goes_by_any else None,
        resumed is not None,
    )


def _claude_flags(
    cli: AgentCli,
    work: Agent,
    named: set[str],
    system: str,
    new: str,
    resumed: str | None,
    allowance: float | None,
) -> list[str]:
    """The flags of Claude Code, but for what its command line names already."""
    flags = ["-p", "--output-format", cli.output]
    if cli.output == "stream-json":
        flags.append("--verbose")  # without it, the CLI refuses to stream
    if "conversation" not in named:
        # One token, so that an id can never be read as a flag.
        flags.append(f"--session-id={new}" if resumed is None else f"--resume={resumed}")
    if system and "system" not in named:
        flags += ["--append-system-prompt", system]
    if work.permission_mode:
        flags += ["--permission-mode", work.permission_mode]
    if work.allowed_tools:
        flags += ["--allowedTools", ",".join(work.allowed_tools)]
    if allowance is not None:
        flags += ["--max-budget-usd", _dollars(allowance)]
    if work.mcp_config:
        flags += ["--mcp-config", work.mcp_config]
    if work.model and "model" not in named:
        flags += ["--model", work.model]
    return flags


def _dollars(amount: float) -> str:
    return f"{amount:.6f}".rstrip("0").rstrip(".")


def _filled(template: Sequence[str], values: Mapping[str, str | None]) -> list[str]:
    """The tokens with their values. One whose value is not there goes, and so does the flag that stands before it."""
    command: list[str] = []
    for token in template:
        if all(values[name] is not None for name in _PLACEHOLDER.findall(token)):
            command.append(_PLACEHOLDER.sub(lambda found: values[found[1]] or "", token))
        elif len(command) > 1 and _PLACEHOLDER.fullmatch(token) and _FLAG.fullmatch(command[-1]):
            command.pop()
    return command
