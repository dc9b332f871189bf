"""What a person types in a chat, as messages: at a prompt, and while an answer is being given; or lines from a pipe.

At the prompt, readline edits the line. While an answer comes, the terminal itself does: what is half typed then stands
at the next prompt.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from ostinato.cli.console import stdout
from ostinato.errors import InvalidInput

__all__ = ["TerminalLines", "TypedLines", "typed_lines"]

_PROMPT, _GOES_ON = "you> ", "...> "
_LONGEST_READ = 65_536


def typed_lines() -> TypedLines:
    """Of the terminal, if this is one; else of standard input."""
    return TerminalLines() if sys.stdin.isatty() and stdout().isatty() else TypedLines()


class TypedLines:
    """Lines of standard input. One that ends with a backslash goes on in the next."""

    is_terminal = False

    def __init__(self) -> None:
        self._parts: list[str] = []
        """The lines of a message that goes on."""

    def message(self) -> str | None:
        """The next message, when it has come; None at the end."""
        while (line := self._line()) is not None:
            if (text := self._joined(line)) is not None:
                return text
        return self._joined("") if self._parts else None

    @contextmanager
    def listening(self, heard: Callable[[str | None], None]) -> Iterator[None]:
        """While an answer is being given: nothing is read ahead."""
        yield

    def _line(self) -> str | None:
        line: bytes = sys.stdin.buffer.readline()
        try:
            return line.decode().removesuffix("\n") if line else None
        except UnicodeDecodeError as error:
            raise InvalidInput(f"standard input is not text: {error}", field="payload", hint="send UTF-8") from error

    def _joined(self, line: str) -> str | None:
        """The message that this line ends; None if it goes on."""
        if line.endswith("\\"):
            self._parts.append(line[:-1])
            return None
        text = "\n".join([*self._parts, line])
        self._parts.clear()
        return text


class TerminalLines(TypedLines):
    """What is typed at a terminal."""

    is_terminal = True

    def __init__(self) -> None:
        super().__init__()
        self._rest = b""
        """The beginning of a line that was read before its end came."""
        _half_typed()  # from here on, readline edits

    def _line(self) -> str | None:
        rest, self._rest = self._rest.decode("utf-8", "replace"), b""
        while True:
            try:
                return rest + input(_GOES_ON if self._parts else _PROMPT)
            except EOFError:
                stdout().write("\n")
                return None
            except KeyboardInterrupt:
                stdout().write("\n")
                if not (_half_typed() or self._parts or rest):
                    return None
                rest = ""
                self._parts.clear()

    @contextmanager
    def listening(self, heard: Callable[[str | None], None]) -> Iterator[None]:
        """Tell each message that is typed while an answer is being given, and None at the end."""
        loop, number = asyncio.get_running_loop(), sys.stdin.fileno()
        loop.add_reader(number, self._read, number, heard)
        try:
            yield
        finally:
            loop.remove_reader(number)

    def _read(self, number: int, heard: Callable[[str | None], None]) -> None:
        data = b""
        with suppress(OSError):  # the terminal is gone
            data = os.read(number, _LONGEST_READ)
        if not data:
            heard(None)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            if (text := self._joined(line.decode("utf-8", "replace"))) is not None:
                heard(text)


def _half_typed() -> str:
    """What stands at the prompt of readline, which edits whatever is typed once it is imported."""
    try:
        import readline
    except ImportError:  # not every Python has it
        return ""
    return readline.get_line_buffer()
