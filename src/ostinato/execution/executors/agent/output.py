"""What a command line prints, as bytes: cut into lines, and read as text or as one JSON object. Pure.

stream.py and json_fields.py read the third output mode, and stand on this. However the bytes are cut into pieces, the
same comes out; memory is bounded, whatever the length of a line.
"""

from __future__ import annotations

import codecs
import json
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import msgspec

from ostinato.execution.executors.agent.agent_stream import TEXT_CAP, AgentStream

__all__ = ["LONGEST_LINE", "Lines", "OneJson", "PlainText", "Reader", "Show", "StderrTail", "decoded", "dropped"]

LONGEST_LINE = 8_000_000
"""In bytes. A result of a tool can be a whole picture; nobody reads an answer that is longer."""

Show = Callable[[str], None]


class Reader(Protocol):
    """Takes what comes through a pipe."""

    def feed(self, data: bytes) -> None:
        """The next piece."""
        ...

    def close(self) -> None:
        """There is no more."""
        ...


class Lines:
    """Cuts bytes into lines; one that is too long is counted and dropped."""

    def __init__(
        self, take: Callable[[bytes], None], dropped: Callable[[int], None], longest: int = LONGEST_LINE
    ) -> None:
        self._take = take
        self._dropped = dropped
        self._longest = longest
        self._begun = bytearray()
        self._length = 0
        """Of the line that has begun, what was dropped of it included."""

    def feed(self, data: bytes) -> None:
        *whole, rest = data.split(b"\n")
        for part in whole:
            self._add(part)
            self._end()
        self._add(rest)

    def close(self) -> None:
        if self._length:
            self._end()

    def _add(self, part: bytes) -> None:
        self._length += len(part)
        if self._length <= self._longest:
            self._begun += part
        else:
            self._begun.clear()

    def _end(self) -> None:
        line, length = bytes(self._begun), self._length
        self._begun, self._length = bytearray(), 0
        if length > self._longest:
            self._dropped(length)
        else:
            self._take(line)


class OneJson:
    """One JSON object, printed at the end; Claude Code's list of events ends with one, too."""

    def __init__(
        self,
        stream: AgentStream,
        show: Show,
        longest: int = LONGEST_LINE,
        take: Callable[[Mapping[str, Any]], None] | None = None,
    ) -> None:
        self._heard = stream
        self._show = show
        self._longest = longest
        self._take = take or stream.take_result
        self._data = bytearray()
        self._length = 0

    def feed(self, data: bytes) -> None:
        self._length += len(data)
        self._data += data[: max(0, self._longest - len(self._data))]

    def close(self) -> None:
        data = bytes(self._data).strip()
        if self._length > self._longest:
            self._heard.take_line(dropped(self._length))
            self._show(dropped(self._length) + "\n")
            return
        answer = decoded(data)
        if not isinstance(answer, (Mapping, list)):
            # Something was printed before it.
            answer = decoded(data.rpartition(b"\n")[2]) or decoded(data[max(0, data.find(b"{")) :])
        if isinstance(answer, list):
            answer = next((each for each in reversed(answer) if isinstance(each, Mapping)), None)
        if isinstance(answer, Mapping):
            self._take(answer)
            self._heard.spoke = not self._heard.is_error
            self._show(self._heard.text + "\n" if self._heard.text else "")
        elif data:
            text = data.decode("utf-8", "backslashreplace")
            self._heard.take_line(text.splitlines()[-1])
            self._show(text + "\n")


class PlainText:
    """Text for people, which is the answer, too; its end is kept if it is long."""

    def __init__(self, stream: AgentStream, show: Show) -> None:
        stream.is_plain = True
        self._heard = stream
        self._show = show
        self._decode = codecs.getincrementaldecoder("utf-8")("backslashreplace").decode
        self._kept: deque[str] = deque()
        self._room = TEXT_CAP
        self._is_cut = False
        """Whether there was more than is kept as the answer."""
        self._was_dropped = False
        """Whether some of it is not even here any more."""
        self._last = "\n"

    def feed(self, data: bytes, *, final: bool = False) -> None:
        text = self._decode(data, final)
        if not text:
            return
        self._show(text)
        self._last = text[-1]
        self._kept.append(text)
        self._room -= len(text)
        self._is_cut = self._is_cut or self._room < 0
        while self._room + len(self._kept[0]) <= 0:
            self._room += len(self._kept.popleft())
            self._was_dropped = True

    def close(self) -> None:
        self.feed(b"", final=True)
        if self._last != "\n":
            self._show("\n")
        text = self._heard.mask.hide_cut("".join(self._kept), begin=self._was_dropped)[-TEXT_CAP:].strip()
        self._heard.answered = True
        self._heard.text = f"… {text}" if self._is_cut else text


class StderrTail:
    """stderr: shown line by line, and its end is remembered."""

    def __init__(self, stream: AgentStream, show: Show, longest: int = LONGEST_LINE) -> None:
        self._heard = stream
        self._show = show
        self._lines = Lines(self._line, lambda length: self._line(dropped(length).encode()), longest)

    def feed(self, data: bytes) -> None:
        self._lines.feed(data)

    def close(self) -> None:
        self._lines.close()

    def _line(self, line: bytes) -> None:
        text = line.decode("utf-8", "backslashreplace").rstrip("\r")
        self._heard.take_line(text)
        self._show(text + "\n")


def dropped(length: int) -> str:
    """What stands where something was left out."""
    return f"ostinato: a line of {length:,} bytes was dropped"


def decoded(data: bytes) -> Any:
    """The JSON value, None if it is none. Halves of characters, as a cut by JavaScript leaves them, do no harm."""
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        return json.loads(data.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
