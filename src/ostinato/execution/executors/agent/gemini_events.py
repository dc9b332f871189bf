"""The events of `gemini --output-format stream-json`, as the Gemini CLI documents them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ostinato.execution.executors.agent.agent_stream import as_text
from ostinato.execution.executors.agent.stream import EventReader, Handlers

__all__ = ["GeminiEvents"]


class GeminiEvents(EventReader):
    """init, message, tool_use, error and result."""

    _complaint = ""
    """The last error that it told, for a result that says only that there was one."""

    def _handlers(self) -> Handlers:
        return {
            "init": self._init,
            "message": self._message,
            "tool_use": self._tool,
            "error": self._error,
            "result": self._result,
        }

    def _init(self, event: Mapping[str, Any]) -> None:
        self._begin(event.get("session_id"), event.get("model"))

    def _message(self, event: Mapping[str, Any]) -> None:
        text = event.get("content")
        if event.get("role") != "assistant" or not isinstance(text, str):
            return
        self._heard.take_spoken()
        if event.get("delta") is True:
            self._say_piece(text)
        else:
            self._say(text)

    def _tool(self, event: Mapping[str, Any]) -> None:
        self._heard.take_spoken()
        self._spoken, self._is_cut = "", False
        self._use(event.get("tool_name"), event.get("parameters"))

    def _error(self, event: Mapping[str, Any]) -> None:
        text = as_text(event.get("message"))
        self._aside(text)
        if event.get("severity") != "warning":
            self._complaint = text

    def _result(self, event: Mapping[str, Any]) -> None:
        if event.get("status") == "error" and not event.get("error") and self._complaint:
            event = {**event, "error": {"message": self._complaint}}
        self._finish(event)
