"""The command `ostinato`: its commands, each imported only when it is called, and what its exit codes mean.

0 ok, 1 failure, 2 wrong usage, 3 not found, 4 there is no database here, 5 a wait timed out, 6 the database is lost,
130 interrupted.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cyclopts import App, CoercionError, CycloptsError, Parameter

from ostinato.cli.console import PROGRAM, as_typed, json_text, name_database, open_streams, program, say, stdout
from ostinato.cli.open_database import project_app
from ostinato.errors import InvalidInput, NoDatabase, NotFound, OstinatoError, TimingError, WaitTimeout

if TYPE_CHECKING:
    from cyclopts.help import HelpPanel
    from rich.console import Console, ConsoleOptions

    from ostinato.app import Ostinato

__all__ = ["app", "run"]

FAILURE, USAGE, NOT_FOUND, NO_DATABASE, TIMED_OUT = 1, 2, 3, 4, 5

_SHARED = {"--db": True, "--app": True, "--json": False}
"""Flags that may stand before the command too, and whether they take a value."""


def _version() -> str:
    from importlib.metadata import version

    return version("ostinato")


_EXEC = """Run something once, right here, with live output and its exit code.

It is recorded like every run, but needs no engine and waits for no lane. What a task returns is printed after its
output. Ctrl-C cancels it, a second one forces it.
The exit code is the command's own; 1 for other failures, 130 when it was interrupted."""

_UP = """Start the engine, the API and the page, and show each run.

Ctrl-C or SIGTERM drains the engine, once more forces it. SIGUSR1 drains it and starts the process anew in place, with
new code."""

_WEB = """Serve the API and the page without an engine.

Ctrl-C or SIGTERM ends it, once more at once. SIGUSR1 starts the process anew in place, with new code."""

_WORKER = """Start only the engine, for a service manager, with plain log lines.

SIGTERM or Ctrl-C drains the engine, once more forces it. SIGUSR1 drains it and starts the process anew in place, with
new code."""

app = App(
    name=PROGRAM,
    help="A durable task scheduler: every due time gets one row that says what became of it, and why.",
    version=_version,
    help_format="plaintext",
    suppress_keyboard_interrupt=False,
    default_parameter=Parameter(negative=(), show_default=False),
)

for _order, (_name, _target, _help) in enumerate(
    (
        ("up", "up:up", _UP),
        ("web", "web:web", _WEB),
        ("worker", "up:worker", _WORKER),
        ("schedule", "schedule.commands:app", "Add, list, change, trigger and remove schedules."),
        ("run", "run:app", "List, show, follow, cancel, retry and wait for runs."),
        ("exec", "execute:execute", _EXEC),
        ("project", "project:app", "Add, list and remove projects, and put schedules into them."),
        (
            "calendar",
            "calendar:app",
            "List, set and remove calendars: named sets of dates on which schedules are not due.",
        ),
        (
            "session",
            "session.commands:app",
            "Send messages to sessions and chat in them; list, show, stop and follow them.",
        ),
        ("lane", "lane:app", "List, set, pause, resume and clear lanes."),
        (
            "notify",
            "notify:app",
            "Channels that people are told by: add, list, test and remove them and their rules, and see what was sent.",
        ),
        ("incident", "incident:app", "What is wrong: list, show and acknowledge incidents, and run again what failed."),
        ("why", "why:why", "Why a schedule did or did not run."),
        ("report", "report:report", "Report progress, or a heartbeat, from inside a run."),
        ("timing", "timing:timing", "Explain a timing and show its next times."),
        ("task", "task:app", "List the tasks that can be run."),
        ("node", "node:app", "List, drain and resume nodes: processes whose engine is started."),
        ("outbox", "outbox:app", "Create outboxes in other databases; list, retry and remove what waits in them."),
        ("token", "token:app", "Add, list and remove tokens for scripts and other machines."),
        ("audit", "audit:app", "List what people and agents did."),
        ("login", "login:login", "Print a link that logs a browser in, once."),
        ("logout", "login:logout", "Log a user's browsers out."),
        ("db", "database:app", "The database: migrate, status, check, backup, prune."),
        ("doctor", "doctor:doctor", "Check the installation, and say how to fix what is wrong."),
        ("completion", "completion:completion", "Print the completion script for a shell."),
    )
):
    app.command(f"ostinato.cli.{_target}", name=_name, help=_help, sort_key=_order)


def _in_words(error: CycloptsError) -> str:
    """What is wrong with the words of a command, told to people."""
    if isinstance(error, CoercionError) and error.target_type is int and error.token is not None:
        name = error.token.keyword or (error.argument.name if error.argument is not None else "it")
        return f"{name} takes a whole number, and {error.token.value!r} is none"
    return str(error)


def run(argv: Sequence[str] | None = None, project: Ostinato | None = None, called: str = PROGRAM) -> int:
    """The entry point: carry out the command, answer its exit code. `project` is the app where none is named, and
    `called` what its people type for `ostinato`."""
    project_app.set(project)
    program.set(called)
    name_database(None, None)
    open_streams()
    tokens = _shared_last(list(sys.argv[1:] if argv is None else argv))
    as_json = "--json" in tokens
    _never_fail_to_print()
    app.help_formatter = None if sys.stdout.isatty() and not os.environ.get("NO_COLOR") else _PlainHelp()
    try:
        code = app(
            tokens,
            result_action="return_value",
            exit_on_error=False,
            print_error=False,
        )
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except CycloptsError as error:
        command = " ".join((PROGRAM, *(error.command_chain or ())))
        _complain(_in_words(error), as_json, hint=f"see '{command} --help'")
        return USAGE
    except TimingError as error:
        _complain(str(error), as_json, {"error": error.message, "position": error.position, "hint": error.hint})
        return USAGE
    except OstinatoError as error:
        _complain(str(error), as_json)
        return _exit_code(error)
    except KeyboardInterrupt:
        from ostinato.cli.ending import FORCED

        return FORCED
    except BrokenPipeError:
        # Whoever read us went away (`… | head`): not an error, and nothing more can be told.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (sys.stdout, stdout()):
            os.dup2(nowhere, stream.fileno())
        return 0


def _exit_code(error: OstinatoError) -> int:
    if isinstance(error, InvalidInput):
        return USAGE
    if isinstance(error, NotFound):
        return NO_DATABASE if isinstance(error, NoDatabase) else NOT_FOUND
    return TIMED_OUT if isinstance(error, WaitTimeout) else FAILURE


def _shared_last(tokens: list[str]) -> list[str]:
    """`ostinato --db x schedule ls` means `ostinato schedule ls --db x`."""
    taken = 0
    while taken < len(tokens):
        name, equals, _ = tokens[taken].partition("=")
        if name not in _SHARED:
            break
        taken += 2 if _SHARED[name] and not equals else 1
    leading, rest = tokens[:taken], tokens[taken:]
    if not rest or rest[0].startswith("-"):
        return tokens if not leading else [*rest, *leading]
    end = rest.index("--") if "--" in rest else len(rest)
    return [*rest[:end], *leading, *rest[end:]]


def _complain(message: str, as_json: bool, shape: dict[str, object] | None = None, *, hint: str = "") -> None:
    if as_json:
        sys.stderr.write(json_text(shape or {"error": as_typed(message)}) + "\n")
        return
    say(f"error: {message}", "red")
    if hint:
        say(hint)


class _PlainHelp:
    """Help off a terminal: the columns that a terminal gets, without a frame around them."""

    def __call__(self, console: Console, options: ConsoleOptions, panel: HelpPanel) -> None:
        from cyclopts.help.formatters import DefaultFormatter
        from cyclopts.help.specs import PanelSpec
        from rich.box import Box

        DefaultFormatter(panel_spec=PanelSpec(box=Box("    \n" * 8)))(console, options, panel)

    def render_usage(self, console: Console, options: ConsoleOptions, usage: object) -> None:
        from cyclopts.help.formatters import DefaultFormatter

        DefaultFormatter().render_usage(console, options, usage)


def _never_fail_to_print() -> None:
    """A terminal that cannot show a character shows another one instead of ending the command."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, ValueError):  # a stream that tests put there
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]
