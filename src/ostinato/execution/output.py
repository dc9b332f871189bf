"""Text of running work: made fit for every database, and captured with a cap.

The first half and the last half are kept. The head is handed out as it comes. The tail is known only at the end; until
then its last lines are handed out as a part that the next one replaces. Bytes are kept as they came, with the instant
of their arrival, and made into stamped lines when they are handed out: what is dropped in between costs next to
nothing.
"""

from __future__ import annotations

import codecs
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from ostinato.clock import Micros
from ostinato.execution.secrets import NO_SECRETS, Mask
from ostinato.models.output import STAMP_LENGTH, OutputPart, stamp

__all__ = ["CAP", "CappedText", "readable", "storable"]

CAP = 1_000_000
"""How many bytes of output a run keeps, unless the settings say another number."""
_LIVE = 16_000
"""How much of the tail can be read while the work runs."""
_LONG_LINE = 8_000
"""A line that is longer may be broken where the head ends and where the tail begins."""
_SMALL = 1_000
"""Pieces smaller than this are joined to one, so that a thousand prints are not a thousand objects."""
_INVALID = {0xDC00 + byte: f"\\x{byte:02x}" for byte in range(0x80, 0x100)}

_Piece = tuple[Micros, bytes]


def storable(text: str) -> str:
    """The text with what a database cannot hold made readable: lone surrogates (file names that are not UTF-8), NUL."""
    text = text.replace("\0", "\\x00")
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def readable(data: bytes) -> str:
    """The text of what was printed; what is not UTF-8 in it is shown as `\\xff`."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = data.decode("utf-8", "surrogateescape")
        # To decode with backslashreplace is four times as slow: it makes an error of each wrong byte.
        if "\\udc" in text:
            text = text.translate(_INVALID)
        else:
            text = text.encode("utf-8", "backslashreplace").replace(b"\\udc", b"\\x").decode()
    return text.replace("\0", "\\x00")


class CappedText:
    """Text added from any thread; bounded memory, whatever is added."""

    __slots__ = (
        "_cut",
        "_cut_lines",
        "_head",
        "_head_is_broken",
        "_head_is_open",
        "_head_room",
        "_lock",
        "_now",
        "_number",
        "_tail",
        "_tail_room",
        "_was_told",
        "ends_open",
        "mask",
    )

    def __init__(self, cap: int = CAP, now: Callable[[], Micros] = lambda: 0) -> None:
        self._now = now
        self._head_room = cap // 2
        self._head_is_open = self._head_room > 0
        self._head_is_broken = False
        """Its last line was handed out without its end."""
        self._tail_room = cap - cap // 2
        self._head: deque[_Piece] = deque()
        """What the head has got and nobody took yet; its last line may be unfinished."""
        self._tail: deque[_Piece] = deque()
        self._cut = self._cut_lines = 0
        self.ends_open = False
        """Whether the last line has no end yet."""
        self._was_told = False
        self._number = 0
        """Of the last part that was handed out, but for those that are replaced."""
        self._lock = threading.Lock()
        self.mask: Mask = NO_SECRETS

    def add(self, text: str | bytes) -> None:
        """Append text, dropping from the middle once the cap is reached."""
        data = text.encode("utf-8", "backslashreplace") if isinstance(text, str) else text
        at = self._now()
        with self._lock:
            if data:
                self.ends_open = not data.endswith(b"\n")
            if self._head_is_open:
                data = self._add_head(at, data)
            if data:
                self._add_tail(at, data)

    def _add_head(self, at: Micros, data: bytes) -> bytes:
        """What the head has room for; answers the rest."""
        end = self._head_room
        if end < len(data):
            # Not in the middle of a character, which has at most four bytes.
            end = next((place for place in range(end, max(end - 4, 0), -1) if data[place] & 0xC0 != 0x80), end)
        self._head_room -= min(len(data), end)
        self._head_room -= STAMP_LENGTH * _append(self._head, at, data[:end])
        if end < len(data) or self._head_room <= 0:
            self._head_is_open = False
            self._hand_over()
        return data[end:]

    def _hand_over(self) -> None:
        """The head is full: a line that began in it and is not too long goes on in the tail as a whole."""
        finished, begun = _split(self._head)
        if sum(len(data) for _, data in begun) <= _LONG_LINE:
            self._head = deque(finished)
            for at, data in begun:
                self._add_tail(at, data)

    def _add_tail(self, at: Micros, data: bytes) -> None:
        self._tail_room -= len(data) + STAMP_LENGTH * _append(self._tail, at, data)
        while self._tail_room < 0:
            since, first = self._tail.popleft()
            dropped = min(len(first), -self._tail_room)
            if dropped < len(first):
                self._tail.appendleft((since, first[dropped:]))
            else:
                self._tail_room += STAMP_LENGTH
            self._tail_room += dropped
            self._cut += dropped
            self._cut_lines += first.count(b"\n", 0, dropped)

    def take(self) -> Sequence[OutputPart]:
        """What the head has got since the last call, and the end of what has come so far."""
        with self._lock:
            # A line that the head could not hold as a whole is known to be broken only when something was cut.
            finished, begun = (list(self._head), []) if self._cut else _split(self._head)
            self._head = deque(begun)
            last, cut, cut_lines = _last([*begun, *self._tail], _LIVE)
            self._look_at(finished)
            cut += self._cut
            cut_lines += self._cut_lines - self._head_is_broken
        parts = self._numbered([OutputPart(_rendered(finished, self.mask))] if finished else [])
        end = _end(last, self.mask, cut, cut_lines, is_tail=True)
        if end.text or self._was_told:
            parts.append(end)
            self._was_told = bool(end.text)
        return parts

    def take_all(self) -> Sequence[OutputPart]:
        """The rest, at the end of the attempt."""
        with self._lock:
            head, tail = list(self._head), list(self._tail)
            self._head.clear()
            self._tail.clear()
            if not self._cut:
                head, tail = head + tail, []
            self._look_at(head)
            cut_lines = self._cut_lines - self._head_is_broken
        parts = [OutputPart(_rendered(head, self.mask))] if head else []
        if self._cut:
            end = _end(tail, self.mask, self._cut, cut_lines)
            # With a tiny cap, a last line that has no end may be cut as a whole.
            parts.append(end if end.text else replace(end, cut_lines=end.cut_lines + self.ends_open))
        return self._numbered(parts)

    def _numbered(self, parts: Iterable[OutputPart]) -> list[OutputPart]:
        """The next parts of the attempt."""
        numbered = [replace(part, number=number) for number, part in enumerate(parts, self._number + 1)]
        self._number += len(numbered)
        return numbered

    def _look_at(self, handed_out: list[_Piece]) -> None:
        """The first line end that is cut, or the first that is kept, ends a line that the head has begun."""
        if handed_out:
            self._head_is_broken = not handed_out[-1][1].endswith(b"\n")


def _append(pieces: deque[_Piece], at: Micros, data: bytes) -> int:
    """Add a piece, or to the last one if its line goes on or it came in the same millisecond; how many are new."""
    if pieces:
        since, last = pieces[-1]
        is_same = since // 1000 == at // 1000
        if len(last) < _SMALL and (is_same or not last.endswith(b"\n")):
            end = len(data) if is_same else data.find(b"\n") + 1 or len(data)
            pieces[-1] = (since, last + data[:end])
            data = data[end:]
    if not data:
        return 0
    pieces.append((at, data))
    return 1


def _split(pieces: Iterable[_Piece]) -> tuple[list[_Piece], list[_Piece]]:
    """Whole lines, and the unfinished one behind them."""
    finished, begun = list(pieces), []
    while finished and not finished[-1][1].endswith(b"\n"):
        at, data = finished.pop()
        end = data.rfind(b"\n") + 1
        begun.append((at, data[end:]))
        if end:
            finished.append((at, data[:end]))
    return finished, begun[::-1]


def _last(pieces: list[_Piece], most: int) -> tuple[list[_Piece], int, int]:
    """The last `most` bytes, and how many bytes and line ends are before them."""
    kept: list[_Piece] = []
    for position in range(len(pieces) - 1, -1, -1):
        at, data = pieces[position]
        if len(data) > most:
            kept.append((at, data[len(data) - most :]))
            before = [data[: len(data) - most], *(data for _, data in pieces[:position])]
            return kept[::-1], sum(map(len, before)), sum(data.count(b"\n") for data in before)
        kept.append((at, data))
        most -= len(data)
    return kept[::-1], 0, 0


def _end(pieces: list[_Piece], mask: Mask, cut: int, cut_lines: int, *, is_tail: bool = False) -> OutputPart:
    """The last pieces of what came. If something was cut before them, they begin with a whole line, if there is one."""
    is_broken = False
    if cut:
        first = b"".join(data for _, data in pieces)[:_LONG_LINE]
        end_of_line = first.find(b"\n") + 1
        if end_of_line == sum(len(data) for _, data in pieces):
            end_of_line = 0  # the last line is longer than the tail: its end is better than nothing
        drop = end_of_line
        is_broken = not end_of_line
        while is_broken and drop < min(3, len(first)) and first[drop] & 0xC0 == 0x80:
            drop += 1  # the rest of a broken character
        pieces = _without(pieces, drop)
        cut += drop
        cut_lines += bool(end_of_line)
    return OutputPart(_rendered(pieces, mask, is_broken=is_broken), cut_lines, cut, is_tail)


def _without(pieces: list[_Piece], drop: int) -> list[_Piece]:
    """The pieces but for the first `drop` bytes."""
    for position, (at, data) in enumerate(pieces):
        if drop < len(data):
            return [(at, data[drop:]), *pieces[position + 1 :]]
        drop -= len(data)
    return []


def _rendered(pieces: Iterable[_Piece], mask: Mask, *, is_broken: bool = False) -> str:
    """Pieces as lines with their stamps, the secrets in them hidden. `is_broken`: the first line has no begin."""
    marks: list[tuple[str, int]] = []
    several: list[bytes] = []
    is_open = False
    for at, data in pieces:
        several.append(data)
        ends = data.count(b"\n")
        goes_on = not data.endswith(b"\n")
        # A line that goes on has the stamp of its beginning.
        if (begun := ends + goes_on - is_open) > 0:
            marks.append((stamp(at), begun))
        is_open = goes_on
    lines = _masked(b"".join(several), mask, is_broken=is_broken).split("\n")
    stamped: list[str] = []
    place = 0
    for mark, count in marks:
        stamped.append(mark + (lines[place] if count == 1 else "\n ".join(lines[place : place + count])))
        place += count
    # All at once: a command may print a million short lines, and each step for each of them takes its time.
    return "\n".join(stamped + lines[place:])


def _masked(data: bytes, mask: Mask, *, is_broken: bool) -> str:
    """The text without the secrets. No secret goes over a line end, so that only broken lines need a closer look."""
    if not mask.has_any:
        return readable(data)
    begin = data.find(b"\n") if is_broken else 0
    end = data.rfind(b"\n") + 1
    if begin < 0:
        return _masked_end(data, mask, is_broken=is_broken)
    first = mask.hide_cut(readable(data[:begin]), begin=is_broken)
    return first + mask.hide(readable(data[begin:end])) + _masked_end(data[end:], mask)


def _masked_end(data: bytes, mask: Mask, *, is_broken: bool = False) -> str:
    """Where a line is broken, half of a secret may be left, which even may end in the middle of a character."""
    _, complete = codecs.utf_8_decode(data, "surrogateescape")
    text = readable(data[:complete])
    hidden = mask.hide_cut(text, begin=is_broken, end=True)
    if hidden != mask.hide_cut(text, begin=is_broken):
        return hidden
    return mask.hide_cut(readable(data), begin=is_broken)
