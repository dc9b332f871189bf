"""The events of `codex exec --json`, as the OpenAI Codex CLI documents them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ostinato.execution.executors.agent.agent_stream import AgentStream, as_text
from ostinato.execution.executors.agent.output import LONGEST_LINE, Show
from ostinato.execution.executors.agent.stream import EventReader, Handlers

__all__ = ["CodexEvents"]


class CodexEvents(EventReader):
    """thread.started, item.started, item.completed, turn.completed, turn.failed and error."""

    def __init__(self, stream: AgentStream, show: Show, longest: int = LONGEST_LINE) -> None:
        super().__init__(stream, show, longest)
        stream.counts_conversation = True
        self._started: set[str] = set()
        """Items that were shown when they began."""

    def _handlers(self) -> Handlers:
        return {
            "thread.started": self._thread,
            "item.started": self._item_started,
            "item.completed": self._item_completed,
            "turn.completed": self._finish,
            "turn.failed": self._failed,
            "error": self._error,
        }

    def _thread(self, event: Mapping[str, Any]) -> None:
        self._begin(event.get("thread_id"))

    def _item_started(self, event: Mapping[str, Any]) -> None:
        item = event.get("item")
        if isinstance(item, Mapping) and item.get("type") not in ("agent_message", "reasoning", "error"):
            self._heard.take_spoken()
            self._started.add(as_text(item.get("id")))
            self._use(*_tool(item))

    def _item_completed(self, event: Mapping[str, Any]) -> None:
        item = event.get("item")
        if not isinstance(item, Mapping):
            return
        match item.get("type"):
            case "error":  # a warning: what ends a turn is an event of its own
                self._aside(as_text(item.get("message")))
            case "agent_message":
                self._heard.take_spoken()
                self._say(item.get("text"))
            case "reasoning":
                self._heard.take_spoken()
            case _:
                self._heard.take_spoken()
                if as_text(item.get("id")) not in self._started:
                    self._use(*_tool(item))

    def _failed(self, event: Mapping[str, Any]) -> None:
        self._heard.take_result({**event, "is_error": True})

    def _error(self, event: Mapping[str, Any]) -> None:
        self._aside(as_text(event.get("message")))


def _tool(item: Mapping[str, Any]) -> tuple[Any, Any]:
    """The tool of an item, and what it was given."""
    kind = item.get("type")
    if kind == "mcp_tool_call":
        return f"{as_text(item.get('server'))}.{as_text(item.get('tool'))}", item.get("arguments")
    if kind == "file_change":
        changes = item.get("changes")
        return kind, changes[0] if isinstance(changes, list) and changes else None
    return kind, item
