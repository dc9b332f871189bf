"""Text of running work: made fit for every database, and captured with a cap.

The first half and the last half are kept, and a line says what was cut. The head is handed out as it comes; the tail
is held back until the end, when it is known to be the tail.
"""

from __future__ import annotations

import threading
from collections import deque

__all__ = ["CAP", "CappedText", "storable"]

CAP = 1_000_000
"""How many characters of output a run keeps."""


def storable(text: str) -> str:
    """The text with what a database cannot hold made readable: lone surrogates (file names that are not UTF-8), NUL."""
    text = text.replace("\0", "\\x00")
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


class CappedText:
    """Text added from any thread; bounded memory, whatever is added."""

    __slots__ = ("_cut", "_fresh", "_head_room", "_lock", "_tail", "_tail_size", "cap")

    def __init__(self, cap: int = CAP) -> None:
        self.cap = cap
        self._head_room = cap // 2
        self._fresh: list[str] = []
        self._tail: deque[str] = deque()
        self._tail_size = 0
        self._cut = 0
        self._lock = threading.Lock()

    def add(self, text: str) -> None:
        """Append text, dropping from the middle once the cap is reached."""
        with self._lock:
            if self._head_room:
                head, text = text[: self._head_room], text[self._head_room :]
                self._head_room -= len(head)
                self._fresh.append(head)
            if text:
                self._add_tail(text)

    def _add_tail(self, text: str) -> None:
        half = self.cap - self.cap // 2
        if len(text) > half:
            self._cut += len(text) - half
            text = text[-half:]
        self._tail.append(text)
        self._tail_size += len(text)
        while self._tail_size > half:
            first = self._tail.popleft()
            excess = self._tail_size - half
            if len(first) > excess:
                self._tail.appendleft(first[excess:])
                self._cut += excess
                self._tail_size -= excess
            else:
                self._cut += len(first)
                self._tail_size -= len(first)

    def take(self) -> str | None:
        """What the head has got since the last call."""
        with self._lock:
            fresh, self._fresh = self._fresh, []
        return "".join(fresh) or None

    def take_all(self) -> str | None:
        """The rest, at the end of the run: head, what was cut, tail."""
        with self._lock:
            fresh, self._fresh = self._fresh, []
            tail, self._tail, cut = "".join(self._tail), deque(), self._cut
            self._tail_size = self._cut = 0
        if cut:
            tail = f"\n… {cut:,} characters cut …\n{tail}"
        return ("".join(fresh) + tail) or None
