"""The events of `claude -p --output-format stream-json --verbose`, as Claude Code documents them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ostinato.execution.executors.agent.agent_stream import as_number, as_text
from ostinato.execution.executors.agent.stream import EventReader, Handlers

__all__ = ["ClaudeEvents"]

_SYNTHETIC = "<synthetic>"
"""The model of messages that the command line writes itself: what went wrong, say."""
_CONTEXT = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")


class ClaudeEvents(EventReader):
    """system, assistant, rate_limit_event and result."""

    _model = ""
    """The model of the conversation; those of subagents have contexts of their own."""

    def _handlers(self) -> Handlers:
        return {
            "system": self._system,
            "assistant": self._assistant,
            "rate_limit_event": self._limit,
            "result": self._result,
        }

    def _system(self, event: Mapping[str, Any]) -> None:
        match event.get("subtype"):
            case "init":
                self._model = as_text(event.get("model"))
                self._begin(event.get("session_id"), event.get("model"))
            case "api_retry":
                self._retry(event)

    def _retry(self, event: Mapping[str, Any]) -> None:
        """It failed to reach the model, and tries again by itself."""
        self._heard.retrying = self._heard.mask.shortened(as_text(event.get("error")), 100) or "error"
        status = event.get("error_status")
        number = f" {status}" if isinstance(status, int) else ""
        tries = [as_number(event.get(name)) for name in ("attempt", "max_retries")]
        which = "" if None in tries else f", retry {tries[0]:g} of {tries[1]:g}"
        self._shown.line(f"API error{number}: {self._heard.retrying}{which}")

    def _limit(self, event: Mapping[str, Any]) -> None:
        info = event.get("rate_limit_info")
        if isinstance(info, Mapping) and info.get("status") == "rejected":
            self._heard.limit_ends = as_number(info.get("resetsAt"))

    def _assistant(self, event: Mapping[str, Any]) -> None:
        message = event.get("message")
        fields = message if isinstance(message, Mapping) else {}
        if isinstance(error := event.get("error"), str):
            self._heard.take_code(error)
        elif fields.get("model") != _SYNTHETIC:
            self._heard.take_spoken()
            if event.get("parent_tool_use_id") is None:
                self._take_context(fields)
        content = fields.get("content")
        for block in content if isinstance(content, list) else [{"type": "text", "text": content}]:
            if isinstance(block, Mapping) and block.get("type") == "text":
                self._say(block.get("text"))
            elif isinstance(block, Mapping) and block.get("type") == "tool_use":
                self._use(block.get("name"), block.get("input"))

    def _take_context(self, message: Mapping[str, Any]) -> None:
        self._model = as_text(message.get("model")) or self._model
        usage = message.get("usage")
        if isinstance(usage, Mapping):
            self._heard.take_context(sum(as_number(usage.get(name)) or 0 for name in _CONTEXT))

    def _result(self, event: Mapping[str, Any]) -> None:
        self._finish(event)
        models = event.get("modelUsage")
        pairs = models.items() if isinstance(models, Mapping) else ()
        usages = {name: use for name, use in pairs if isinstance(use, Mapping)}
        # A key can have more behind the model's name: its beta, its date.
        own = [use for name, use in usages.items() if self._model and name.startswith(self._model)]
        windows = [as_number(use.get("contextWindow")) or 0 for use in own or usages.values()]
        self._heard.take_context(None, max(windows, default=None))
