"""Which reader understands what a command line prints: its settings say so, and nothing is guessed."""

from __future__ import annotations

from collections.abc import Mapping

from ostinato.agent_clis import AgentCli
from ostinato.execution.executors.agent.agent_stream import AgentStream
from ostinato.execution.executors.agent.claude_events import ClaudeEvents
from ostinato.execution.executors.agent.codex_events import CodexEvents
from ostinato.execution.executors.agent.gemini_events import GeminiEvents
from ostinato.execution.executors.agent.json_fields import FieldLines, field_object
from ostinato.execution.executors.agent.opencode_events import OpencodeEvents
from ostinato.execution.executors.agent.output import OneJson, PlainText, Reader, Show
from ostinato.execution.executors.agent.stream import EventReader

__all__ = ["reader_for"]

_EVENTS: Mapping[str, type[EventReader]] = {
    "claude": ClaudeEvents,
    "codex": CodexEvents,
    "gemini": GeminiEvents,
    "opencode": OpencodeEvents,
}


def reader_for(cli: AgentCli, stream: AgentStream, show: Show) -> Reader:
    """The reader of its output."""
    match cli.output:
        case "stream-json" if cli.fields:
            return FieldLines(cli.fields, stream, show)
        case "stream-json":
            return _EVENTS[cli.format](stream, show)
        case "json" if cli.fields:
            return field_object(cli.fields, stream, show)
        case "json":
            return OneJson(stream, show)
        case _:
            return PlainText(stream, show)
