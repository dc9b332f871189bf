"""JSON of any other command line, read by the paths that its settings name: one object, or one on each line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ostinato.execution.executors.agent.agent_stream import AgentStream, as_message
from ostinato.execution.executors.agent.output import LONGEST_LINE, Lines, OneJson, Show, decoded, dropped

__all__ = ["FieldLines", "field_object"]

Paths = Mapping[str, tuple[str, ...]]
_TOTALS = {"cost": "cost_usd", "tokens_in": "tokens_in", "tokens_out": "tokens_out", "turns": "turns"}


class FieldLines:
    """One object on each line. Of what several of them say, the last counts."""

    def __init__(self, paths: Paths, stream: AgentStream, show: Show, longest: int = LONGEST_LINE) -> None:
        self._paths = paths
        self._heard = stream
        self._show = show
        self._lines = Lines(self._line, lambda length: self._aside(dropped(length)), longest)

    def feed(self, data: bytes) -> None:
        self._lines.feed(data)

    def close(self) -> None:
        self._lines.close()

    def _aside(self, text: str) -> None:
        self._heard.take_line(text)
        self._show(text + "\n")

    def _line(self, line: bytes) -> None:
        if not line.strip():
            return
        said = decoded(line)
        if not isinstance(said, (Mapping, list)):
            self._aside(line.decode("utf-8", "backslashreplace").rstrip("\r"))
            return
        before = self._heard.text
        _take(self._paths, self._heard, said)
        # Whatever it is that it says: it has been at work.
        self._heard.spoke = self._heard.spoke or not self._heard.is_error
        if self._heard.text != before:
            self._show(self._heard.text + "\n")


def field_object(paths: Paths, stream: AgentStream, show: Show) -> OneJson:
    """The reader of one object at the end."""
    return OneJson(stream, show, take=lambda said: _take(paths, stream, said))


def _take(paths: Paths, stream: AgentStream, said: Any) -> None:
    found = {name: value for name, path in paths.items() if (value := _at(said, path)) is not None}
    error = found.get("error")
    if error:
        stream.take_result({"is_error": True, "error": as_message(error) or _as_json(error)})
    elif "answer" in found and not stream.is_error:
        answer = found["answer"]
        stream.take_result({"is_error": False, "result": answer if isinstance(answer, str) else _as_json(answer)})
    if "conversation" in found:
        stream.take_conversation(found["conversation"])
    stream.take_totals(**{total: found[name] for name, total in _TOTALS.items() if name in found})
    stream.take_context(found.get("context_tokens"), found.get("context_window"))


def _at(value: Any, path: tuple[str, ...]) -> Any:
    """What is at the end of a path, None if the path leads nowhere."""
    for step in path:
        if isinstance(value, Mapping):
            value = value.get(step)
        elif isinstance(value, list) and step.lstrip("-").isdecimal() and -len(value) <= int(step) < len(value):
            value = value[int(step)]
        else:
            return None
    return value


def _as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
