"""The events of an agent's command line, read as they arrive, pure: JSON lines in; lines for people and a Heard out.

output.py cuts the lines, and reads what prints text or one object; agent.py above holds the pipe.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from ostinato.execution.executors.agent.agent_stream import TEXT_CAP, AgentStream, bounded
from ostinato.execution.executors.agent.output import (
    LONGEST_LINE,
    Lines,
    OneJson,
    PlainText,
    Reader,
    Show,
    decoded,
    dropped,
)

__all__ = ["StreamJson", "reader_for"]

_TOOL_LINE = 200
_TELLING = ("command", "file_path", "path", "pattern", "url", "query", "description", "prompt", "skill")
"""The arguments of tools that say best what is done, the best first."""


def reader_for(output: str, stream: AgentStream, show: Show) -> Reader:
    """The reader of an output mode."""
    match output:
        case "stream-json":
            return StreamJson(stream, show)
        case "json":
            return OneJson(stream, show)
        case _:
            return PlainText(stream, show)


class _Shown:
    """Writes lines for people; text that came in pieces is ended before anything else begins."""

    def __init__(self, show: Show) -> None:
        self._show = show
        self._is_open = False

    def line(self, text: str) -> None:
        if text:
            self.end()
            self._show(text if text.endswith("\n") else text + "\n")

    def piece(self, text: str) -> None:
        if text:
            self._show(text)
            self._is_open = not text.endswith("\n")

    def end(self) -> None:
        if self._is_open:
            self._show("\n")
            self._is_open = False


class StreamJson:
    """One JSON object on each line: the events of Claude Code, and those by which Codex and Gemini say the same.

    Events of other types are for others. A line that is no JSON object is shown as it is.
    """

    def __init__(self, stream: AgentStream, show: Show, longest: int = LONGEST_LINE) -> None:
        self._heard = stream
        self._shown = _Shown(show)
        self._lines = Lines(self._line, self._too_long, longest)
        self._spoken = ""
        """The last that the model said: the answer, if the result does not repeat it."""
        self._is_cut = False
        self._events: dict[str, Callable[[Mapping[str, Any]], None]] = {
            "system": self._system,
            "assistant": self._assistant,
            "result": self._result,
            "thread.started": self._begun,
            "item.started": self._item,
            "item.completed": self._item,
            "turn.completed": self._result,
            "turn.failed": self._failed,
            "error": self._error,
            "init": self._begun,
            "message": self._message,
            "tool_use": self._tool,
        }

    def feed(self, data: bytes) -> None:
        self._lines.feed(data)

    def close(self) -> None:
        self._lines.close()
        self._shown.end()

    def _too_long(self, length: int) -> None:
        self._aside(dropped(length))

    def _aside(self, text: str) -> None:
        self._heard.take_line(text)
        self._shown.line(text)

    def _line(self, line: bytes) -> None:
        if not line.strip():
            return
        kind = _kind(line)
        if isinstance(kind, str) and kind not in self._events:
            return  # without reading the rest: what tools answered can be megabytes
        event = decoded(line)
        if not isinstance(event, Mapping):
            self._aside(line.decode("utf-8", "backslashreplace").rstrip("\r"))
        elif isinstance(kind := event.get("type"), str) and kind in self._events:
            self._events[kind](event)

    # Claude Code.

    def _system(self, event: Mapping[str, Any]) -> None:
        if event.get("subtype") == "init":
            self._begun(event)

    def _begun(self, event: Mapping[str, Any]) -> None:
        before = self._heard.begun
        self._heard.take_begun(event.get("session_id") or event.get("thread_id"))
        if self._heard.begun != before:
            model = event.get("model")
            with_model = f" with {model}" if isinstance(model, str) and model else ""
            self._shown.line(self._short(f"conversation {self._heard.begun}{with_model}"))

    def _assistant(self, event: Mapping[str, Any]) -> None:
        if isinstance(error := event.get("error"), str):
            self._heard.take_code(error)
        else:
            self._heard.spoke = True
        message = event.get("message")
        content = message.get("content") if isinstance(message, Mapping) else None
        for block in content if isinstance(content, list) else [{"type": "text", "text": content}]:
            if isinstance(block, Mapping) and block.get("type") == "text":
                self._say(block.get("text"))
            elif isinstance(block, Mapping) and block.get("type") == "tool_use":
                self._shown.line(self._short(_tool_line(block.get("name"), block.get("input"))))

    def _result(self, event: Mapping[str, Any]) -> None:
        # It came in pieces, so a secret is whole only now.
        self._heard.take_result(event, spoken=self._heard.mask.hide_cut(self._spoken, end=self._is_cut))

    # Codex.

    def _item(self, event: Mapping[str, Any]) -> None:
        item = event.get("item")
        if not isinstance(item, Mapping):
            return
        self._heard.spoke = True
        if event["type"] == "item.completed" and item.get("type") == "agent_message":
            self._say(item.get("text"))
        elif event["type"] == "item.started" and item.get("type") != "agent_message":
            self._shown.line(self._short(_tool_line(item.get("type"), item)))

    def _failed(self, event: Mapping[str, Any]) -> None:
        self._heard.take_result({**event, "is_error": True})

    def _error(self, event: Mapping[str, Any]) -> None:
        if isinstance(text := event.get("message"), str):
            self._aside(text)

    # Gemini.

    def _message(self, event: Mapping[str, Any]) -> None:
        text = event.get("content")
        if event.get("role") != "assistant" or not isinstance(text, str):
            return
        self._heard.spoke = True
        if event.get("delta") is not True:
            self._say(text)
            return
        room = max(0, TEXT_CAP - len(self._spoken))
        self._spoken += text[:room]
        self._is_cut = self._is_cut or len(text) > room
        self._shown.piece(text)

    def _tool(self, event: Mapping[str, Any]) -> None:
        self._heard.spoke = True
        self._spoken, self._is_cut = "", False
        self._shown.line(self._short(_tool_line(event.get("tool_name"), event.get("parameters"))))

    def _say(self, text: Any) -> None:
        if isinstance(text, str) and text.strip():
            self._spoken, self._is_cut = bounded(self._heard.mask.hide(text)), False
            self._shown.line(text)

    def _short(self, line: str) -> str:
        return self._heard.mask.shortened(line, _TOOL_LINE)


class _Kind(msgspec.Struct):
    type: Any = None


_decode_kind = msgspec.json.Decoder(_Kind).decode


def _kind(line: bytes) -> Any:
    """The type of an event, if the line is one that can be read without effort."""
    try:
        return _decode_kind(line).type
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _tool_line(name: Any, given: Any) -> str:
    """The use of a tool, to be shortened: `→ Bash: ls -la`."""
    what = name if isinstance(name, str) and name else "tool"
    pairs = given.items() if isinstance(given, Mapping) else ()
    texts = {key: value for key, value in pairs if isinstance(value, str) and key not in ("id", "type", "status")}
    telling = next((texts[key] for key in _TELLING if texts.get(key)), None) or next(iter(texts.values()), "")
    return f"→ {what}: {telling}" if telling.strip() else f"→ {what}"
