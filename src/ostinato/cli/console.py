"""What the command line prints: data on stdout, talk on stderr, colour only on a terminal, tables that fit its width.

Rich is imported when the first line is printed, not before.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import sys
import textwrap
from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TextIO

from ostinato.errors import InvalidInput

if TYPE_CHECKING:
    from rich.console import Console

__all__ = [
    "PROGRAM",
    "Cell",
    "Column",
    "Styled",
    "as_typed",
    "clean",
    "confirmed",
    "emit",
    "emit_json",
    "emit_json_line",
    "fields",
    "json_text",
    "keep_streams",
    "name_database",
    "open_streams",
    "paragraph",
    "plain",
    "program",
    "restore_streams",
    "rich_console",
    "say",
    "stderr",
    "stdout",
    "table",
    "tell",
    "typed",
    "warn",
]

_GAP = 2
_NARROWEST = 8
_ANY_WIDTH = 1_000_000
_WORTHWHILE = 12
"""What an optional column needs at least, or all that it has to say."""
_READABLE = 30
"""What of a flexible column goes before any optional one."""


@dataclass(frozen=True, slots=True)
class Styled:
    """Text with a style of rich, which only a terminal shows."""

    text: str
    style: str
    whole: bool = False
    """Whether it is never wrapped: people copy it."""


Cell = str | Styled


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table; a flexible one is cut when the terminal is too narrow, an optional one left out."""

    title: str
    flexible: bool = False
    optional: bool = False


# Controls of the second block, line and paragraph ends, marks that turn the direction of text, invisible ones, and
# halves of characters, which no terminal can be given.
_OBEYED = re.compile(
    "[\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)


_own: dict[str, TextIO] = {}

PROGRAM = "ostinato"
program: ContextVar[str] = ContextVar("ostinato_program", default=PROGRAM)
"""What people type before a command: hints name commands as `'ostinato run ls'`, and a project has its own way."""


_flags: ContextVar[tuple[str, str]] = ContextVar("ostinato_flags", default=("", ""))
"""What names the database and the app on this command line, as it was typed."""
_WORDS = r"(?:[^'\n]|'[^'\n]*')*?(?='[.,;:!?)]*(?:\s|$))|[^'\n]*"
"""What stands in such quotes: to the one that ends it, for its words may be quoted too."""
_HINT = re.compile(rf"'{PROGRAM} (?=({_WORDS}))")


def name_database(db: str | None, app: str | None) -> None:
    """From here on, the commands in hints name this database and this app, too. Without their passwords."""
    named = ""
    if db is not None:
        from ostinato.config import without_password

        named = f"--db {shlex.quote(without_password(db))} "
    _flags.set((named, "" if app is None else f"--app {shlex.quote(app)} "))


def open_streams() -> None:
    """Put /dev/null where stdin, stdout or stderr was closed before this process began (`>&-`): Python has None there,
    and the next file or connection would get the number."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number: those below are taken by now
            os.set_inheritable(number, True)
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), "r" if number == 0 else "w", encoding="utf-8"))


def keep_streams() -> None:
    """From here on, print to descriptors of our own. For commands that run work, which may close or replace 1 and 2."""
    for name in ("stdout", "stderr"):
        stream: TextIO = getattr(sys, name)
        with contextlib.suppress(AttributeError, OSError, ValueError):  # it is closed, or what tests put there
            number = os.dup(stream.fileno())
            _own[name] = os.fdopen(number, "w", buffering=1, encoding=stream.encoding, errors="replace")


def restore_streams() -> None:
    """Write what is printed so far, and put 1 and 2 back where work may have replaced them."""
    for number, name in ((1, "stdout"), (2, "stderr")):
        own, others = _own.get(name), getattr(sys, name)
        for stream in (others, own or others):
            with contextlib.suppress(AttributeError, OSError, ValueError):  # nobody reads it, or work has closed it
                stream.flush()
        if own is not None:
            with contextlib.suppress(OSError, ValueError):
                os.dup2(own.fileno(), number)


def stdout() -> TextIO:
    """Where data goes."""
    return _own.get("stdout", sys.stdout)


def stderr() -> TextIO:
    """Where talk and the log go."""
    return _own.get("stderr", sys.stderr)


def rich_console(stream: TextIO) -> Console:
    """A console on this stream that prints text as it is, without markup."""
    from rich.console import Console

    class Plain(Console):
        def on_broken_pipe(self) -> None:
            # Whoever read us went away: `run` ends the command, not rich.
            raise BrokenPipeError

    plain = bool(os.environ.get("NO_COLOR")) or not stream.isatty()
    return Plain(
        file=stream, color_system=None if plain else "auto", markup=False, highlight=False, emoji=False, soft_wrap=True
    )


def clean(text: str) -> str:
    """One line without characters that a terminal would obey."""
    return "".join(char if char.isprintable() else " " for char in text)


def plain(value: Any) -> Any:
    """An answer, or a model that is one, as what JSON has."""
    from msgspec import to_builtins

    return to_builtins(value)


def json_text(value: Any, indent: int | None = None) -> str:
    """JSON as it is printed: readable in every script, and with nothing in it that a terminal would obey."""
    text = json.dumps(plain(value), ensure_ascii=False, indent=indent)
    return text if text.isascii() and "\x7f" not in text else _OBEYED.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at] << 8 | units[at + 1]:04x}" for at in range(0, len(units), 2))


def emit(text: str = "") -> None:
    """A line of data."""
    stdout().write(f"{text}\n")


def emit_json(value: Any) -> None:
    """The answer of a command under --json: one object or one array."""
    emit(json_text(value, indent=2))


def emit_json_line(value: Any) -> None:
    """One object of a stream, on one line, at once."""
    emit(json_text(value))
    stdout().flush()


def say(text: str, style: str = "") -> None:
    """A line for people, on stderr."""
    from rich.text import Text

    # What work said may be in it: a line break is ours, everything else that a terminal would obey is not.
    shown = "\n".join(clean(line) for line in as_typed(text).split("\n"))
    rich_console(stderr()).print(Text(shown, style=style))


def as_typed(text: str) -> str:
    """With the commands in it as people type them here, and for the database that was named."""
    db, app = _flags.get()

    def typed(found: re.Match[str]) -> str:
        return f"'{program.get()} {db if '--db' not in found[1] else ''}{app if '--app' not in found[1] else ''}"

    return _HINT.sub(typed, text)


def typed(command: str) -> Styled:
    """A command that stands for itself, as people type it here: on one line, however long."""
    return Styled(program.get() + command.removeprefix(PROGRAM), "", whole=True)


def tell(answer: Any, text: str, *, as_json: bool) -> None:
    """What a command did: all of it under --json, else a line for people."""
    if as_json:
        emit_json(answer)
    else:
        say(text)


def warn(text: str) -> None:
    """Something is not as it should be, but the command goes on."""
    say(f"warning: {text}", "yellow")


def read_stdin(field: str) -> str:
    """All of standard input, for a value that was given as '-'."""
    try:
        return sys.stdin.buffer.read().decode().removesuffix("\n")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"standard input is not text: {error}", field=field, hint="send UTF-8") from error


def confirmed(question: str, consequence: str) -> bool:
    """Ask before something is lost; where nobody can answer, --yes is needed."""
    if not sys.stdin.isatty():
        raise InvalidInput(consequence, field="yes", hint="pass --yes to do it")
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def table(columns: Sequence[Column], rows: Sequence[Sequence[Cell]], *, otherwise: str = "") -> None:
    """Rows under titles, without lines around them; one line for each row, never wider than the terminal. In a pipe or
    a file nothing is cut, unless COLUMNS asks for it.

    Without rows there is no table, but what is said instead.
    """
    if not rows:
        if otherwise:
            say(otherwise)
        return
    from rich.cells import cell_len
    from rich.text import Text

    console = rich_console(stdout())
    lines: list[list[Styled]] = [[Styled(column.title, "bold") for column in columns]]
    lines += [[Styled(clean(_text(cell)), _style(cell)) for cell in row] for row in rows]
    natural = [max(cell_len(line[index].text) for line in lines) for index in range(len(columns))]
    width = _width(console)
    kept = _room_for(columns, natural, width)
    columns, natural = [columns[index] for index in kept], list(kept.values())
    lines = [[line[index] for index in kept] for line in lines]
    widths = _fit(natural, [column.flexible for column in columns], width)
    for line in lines:
        text = Text()
        for index, (cell, width) in enumerate(zip(line, widths, strict=True)):
            shown = _cut(cell.text, width)
            is_last = index == len(widths) - 1
            text.append(shown, cell.style)
            text.append("" if is_last else " " * (width - cell_len(shown) + _GAP))
        text.rstrip()
        console.print(text)


def _width(console: Console) -> int:
    """What lines are cut and wrapped to."""
    return console.width if stdout().isatty() or os.environ.get("COLUMNS") else _ANY_WIDTH


def _room_for(columns: Sequence[Column], natural: Sequence[int], width: int) -> dict[int, int]:
    """The columns that are shown and their widths: an optional one only where the others stay readable."""
    needed = [
        min(wide, _READABLE) if column.flexible else wide
        for column, wide in zip(columns, natural, strict=True)
        if not column.optional
    ]
    room = width - sum(needed) - _GAP * (len(needed) - 1)
    shown: dict[int, int] = {}
    for index, column in enumerate(columns):
        if not column.optional:
            shown[index] = natural[index]
        elif min(natural[index], _WORTHWHILE) + _GAP <= room:
            shown[index] = min(natural[index], room - _GAP)
            room -= shown[index] + _GAP
    return shown


def _fit(natural: Sequence[int], flexible: Sequence[bool], width: int) -> list[int]:
    """Column widths that fit: the widest flexible column gives way first, others only when that is not enough."""
    widths = list(natural)
    room = width - _GAP * (len(widths) - 1)
    for may_shrink in (flexible, [True] * len(widths)):
        while sum(widths) > room:
            candidates = [index for index, may in enumerate(may_shrink) if may and widths[index] > _NARROWEST]
            if not candidates:
                break
            widths[max(candidates, key=lambda index: widths[index])] -= 1
    return widths


def _cut(text: str, width: int) -> str:
    from rich.cells import cell_len, set_cell_size

    return text if cell_len(text) <= width else set_cell_size(text, width - 1).rstrip() + "…"


def _text(cell: Cell) -> str:
    return cell if isinstance(cell, str) else cell.text


def _style(cell: Cell) -> str:
    return "" if isinstance(cell, str) else cell.style


def fields(pairs: Iterable[tuple[str, Cell | None]]) -> None:
    """One thing, a line for each of its fields; fields without a value are left out, long ones wrap on a terminal."""
    shown = [(name, value) for name, value in pairs if value is not None and _text(value)]
    width = max((len(name) for name, _ in shown), default=0)
    for name, value in shown:
        paragraph(Styled(f"{name.rjust(width)}: ", "bold"), value)


def paragraph(label: Cell, value: Cell) -> None:
    """Text beside a label, wrapped to the width of a terminal; without a label, just wrapped. Styled text is shown as
    it is: it is nobody's hint."""
    from rich.text import Text

    console = rich_console(stdout())
    indent = len(_text(label))
    is_whole = isinstance(value, Styled) and value.whole
    room = _ANY_WIDTH if is_whole else max(20, _width(console) - indent)
    text = as_typed(value) if isinstance(value, str) else value.text
    lines = [line for part in text.splitlines() for line in _wrapped(clean(part), room) or [""]]
    for index, line in enumerate(lines):
        lead = (_text(label), _style(label)) if index == 0 else " " * indent
        console.print(Text.assemble(lead, (line, _style(value))))


def _wrapped(text: str, width: int) -> list[str]:
    """Lines of this width; the commands in it stay whole, for people to copy, and may be longer."""
    hint = re.compile(rf"'{re.escape(program.get())} (?:{_WORDS})'?")
    commands = iter(hint.findall(text))
    # One word as long as the command: no control character is left in the text.
    held = hint.sub(lambda found: "\0" * len(found[0]), text)
    lines = textwrap.wrap(held, width, break_long_words=False)
    return [re.sub("\0+", lambda _: next(commands), line) for line in lines]
