"""The events of an agent's command line, read as they arrive, pure: JSON lines in, lines for people and an
AgentStream out.

What every format has in common is here; claude_events.py, codex_events.py, gemini_events.py, opencode_events.py and
json_fields.py say what the events of each mean. output.py cuts the lines; executor.py above holds the pipe.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from ostinato.execution.executors.agent.agent_stream import TEXT_CAP, AgentStream, bounded
from ostinato.execution.executors.agent.output import LONGEST_LINE, Lines, Show, decoded, dropped

__all__ = ["EventReader", "Handlers"]

Handlers = Mapping[str, Callable[[Mapping[str, Any]], None]]

_CUT_OFF = "its output ends in the middle of an event"
_TOOL_LINE = 200
_TELLING = ("command", "file_path", "filePath", "path", "pattern", "url", "query", "description", "prompt", "skill")
"""The arguments of tools that say best what is done, the best first."""


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


class EventReader(ABC):
    """One JSON object on each line, each with a type.

    Events of types that have no handler are for others. A line that is no JSON object is shown as it is.
    """

    def __init__(self, stream: AgentStream, show: Show, longest: int = LONGEST_LINE) -> None:
        stream.is_live = True
        self._heard = stream
        self._shown = _Shown(show)
        self._lines = Lines(self._line, self._too_long, longest)
        self._spoken = ""
        """The last that the model said: the answer, if the result does not repeat it."""
        self._is_cut = False
        self._is_closing = False
        """What comes now is a line without its end."""
        self._events = self._handlers()

    @abstractmethod
    def _handlers(self) -> Handlers:
        """What is done with an event, by its type."""

    def feed(self, data: bytes) -> None:
        self._lines.feed(data)

    def close(self) -> None:
        self._is_closing = True
        self._lines.close()
        self._shown.end()

    def _too_long(self, length: int) -> None:
        self._aside(dropped(length))

    def _aside(self, text: str) -> None:
        """Something for people that is not the model's."""
        self._heard.take_line(text)
        self._shown.line(text)

    def _line(self, line: bytes) -> None:
        if not line.strip():
            return
        kind = _kind(line)
        if isinstance(kind, str) and kind not in self._events:
            return  # without reading the rest: what tools answered can be megabytes
        event = decoded(line)
        if self._is_closing and event is None and line.lstrip().startswith(b"{"):
            self._heard.take_line(_CUT_OFF)
            self._shown.line(f"ostinato: {_CUT_OFF}")
        elif not isinstance(event, Mapping):
            self._aside(line.decode("utf-8", "backslashreplace").rstrip("\r"))
        elif isinstance(kind := event.get("type"), str) and kind in self._events:
            self._events[kind](event)

    def _begin(self, id: Any, model: Any = None) -> None:
        """The conversation has its id."""
        before = self._heard.begun
        self._heard.take_begun(id)
        if self._heard.begun != before:
            with_model = f" with {model}" if isinstance(model, str) and model else ""
            self._shown.line(self._short(f"conversation {self._heard.begun}{with_model}"))

    def _say(self, text: Any) -> None:
        """A whole message of the model."""
        if isinstance(text, str) and text.strip():
            self._spoken, self._is_cut = bounded(self._heard.mask.hide(text)), False
            self._shown.line(text)

    def _say_piece(self, text: str) -> None:
        """The next piece of a message of the model."""
        room = max(0, TEXT_CAP - len(self._spoken))
        self._spoken += text[:room]
        self._is_cut = self._is_cut or len(text) > room
        self._shown.piece(text)

    def _use(self, tool: Any, given: Any) -> None:
        """The model uses a tool."""
        self._shown.line(self._short(_tool_line(tool, given)))

    def _finish(self, said: Mapping[str, Any]) -> None:
        """The result has come."""
        # The answer may have come in pieces, so a secret is whole only now.
        self._heard.take_result(said, spoken=self._heard.mask.hide_cut(self._spoken, end=self._is_cut))

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
