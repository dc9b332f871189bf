"""The events of `opencode run --format json`, as opencode documents them.

None of them is the last: the answer is there when a step has finished for another reason than the use of tools.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ostinato.execution.executors.agent.agent_stream import AgentStream, as_message, as_number, as_text, bounded
from ostinato.execution.executors.agent.output import LONGEST_LINE, Show
from ostinato.execution.executors.agent.stream import EventReader, Handlers

__all__ = ["OpencodeEvents"]


class OpencodeEvents(EventReader):
    """step_start, text, reasoning, tool_use, step_finish and error; each names the session."""

    def __init__(self, stream: AgentStream, show: Show, longest: int = LONGEST_LINE) -> None:
        super().__init__(stream, show, longest)
        self._is_finished = False
        self._error: Mapping[str, Any] | None = None
        self._steps = self._cost = self._tokens_in = self._tokens_out = 0.0
        self._is_new_step = True
        """Whether nothing was said in this step: what is said in one belongs together."""

    def _handlers(self) -> Handlers:
        return {
            "step_start": self._step_start,
            "text": self._text,
            "reasoning": self._reasoning,
            "tool_use": self._tool_use,
            "step_finish": self._step_finish,
            "error": self._failed,
        }

    def close(self) -> None:
        super().close()
        if self._error is not None:
            self._heard.take_result({"is_error": True, "error": self._error})
        elif self._is_finished:
            self._finish({"is_error": False})

    def _part(self, event: Mapping[str, Any]) -> Mapping[str, Any]:
        self._begin(event.get("sessionID"))
        part = event.get("part")
        return part if isinstance(part, Mapping) else {}

    def _step_start(self, event: Mapping[str, Any]) -> None:
        self._part(event)
        self._is_new_step, self._is_finished = True, False

    def _text(self, event: Mapping[str, Any]) -> None:
        text = as_text(self._part(event).get("text"))
        if not text.strip():
            return
        self._heard.take_spoken()
        before = "" if self._is_new_step else self._spoken
        self._say(text)
        self._spoken = bounded(f"{before}\n\n{self._spoken}".strip())
        self._is_new_step = False

    def _reasoning(self, event: Mapping[str, Any]) -> None:
        self._part(event)
        self._heard.take_spoken()

    def _tool_use(self, event: Mapping[str, Any]) -> None:
        part = self._part(event)
        self._heard.take_spoken()
        state = part.get("state")
        self._use(part.get("tool"), state.get("input") if isinstance(state, Mapping) else None)

    def _step_finish(self, event: Mapping[str, Any]) -> None:
        part = self._part(event)
        tokens = _amounts(part.get("tokens"))
        cache = _amounts(_field(part.get("tokens"), "cache"))
        read = tokens.get("input", 0) + cache.get("read", 0) + cache.get("write", 0)
        written = tokens.get("output", 0) + tokens.get("reasoning", 0)
        self._steps += 1
        self._cost += as_number(part.get("cost")) or 0
        self._tokens_in += read
        self._tokens_out += written
        self._heard.take_totals(
            cost_usd=self._cost, turns=self._steps, tokens_in=self._tokens_in, tokens_out=self._tokens_out
        )
        self._heard.take_context(tokens.get("total") or read + written)
        self._is_finished = part.get("reason") != "tool-calls"

    def _failed(self, event: Mapping[str, Any]) -> None:
        self._part(event)
        error = event.get("error")
        name, data = as_text(_field(error, "name")), _field(error, "data")
        self._error = {"message": as_message(data) or as_message(error) or name, "type": name}
        self._heard.take_status(_field(data, "statusCode"))
        headers = _field(data, "responseHeaders")
        self._heard.retry_after = _seconds(_field(headers, "retry-after"))
        self._aside(as_text(self._error["message"]))


def _field(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else None


def _amounts(value: Any) -> dict[str, float]:
    pairs = value.items() if isinstance(value, Mapping) else ()
    return {name: amount for name, given in pairs if (amount := as_number(given)) is not None}


def _seconds(value: Any) -> float | None:
    try:
        return as_number(float(value))
    except (TypeError, ValueError):
        return None
