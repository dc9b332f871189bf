"""`ostinato session`: every verb of a session. Printing is in `view.py`."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from ostinato.cli.console import emit, say, tell
from ostinato.cli.open_database import OpenDatabase, opened
from ostinato.cli.options import NO_COMMON, NO_MESSAGE, Common, Limit, MessageFlags, SessionKey, Wait, WaitTime
from ostinato.cli.policy import retry_option
from ostinato.cli.run import tell_end
from ostinato.cli.run_view import print_run
from ostinato.cli.schedule.view import warn_of_unserved
from ostinato.cli.session.view import print_event, print_session, print_sessions
from ostinato.cli.work import json_or_text
from ostinato.errors import InvalidInput

if TYPE_CHECKING:
    from ostinato.models.session import Stopped

__all__ = ["app"]

app = App(name="session", help="Send messages to sessions; list, show, stop and follow them.")

_LOOK_SECONDS = 0.25
_PAGE = 1_000


@app.command
def send(
    key: str,
    payload: Annotated[str, Parameter(allow_leading_hyphen=True)],
    /,
    *,
    task: str,
    flags: MessageFlags = NO_MESSAGE,
    wait: Wait = False,
    timeout: WaitTime = None,
    common: Common = NO_COMMON,
) -> int:
    """Put a message into a session. Prints the number of the run that carries it.

    Parameters
    ----------
    key
        The session, such as dm:42; the first message creates it.
    payload
        What the task gets in its list 'payloads': JSON if it is valid JSON, otherwise text; '-' reads standard input.
    task
        The name of the task that gets it.
    """
    message = json_or_text(_from_stdin() if payload == "-" else payload)
    with opened(common) as database:
        id = database.ask(database.services.sessions.send(key, message, task=task, **_options(flags)))
        warn_of_unserved(database, task)
        if not common.json:
            emit(str(id))
        if wait:
            return _ended(database, id, timeout, as_json=common.json)
        run = database.ask(database.services.runs.get(id))
        if common.json:
            print_run(database, run, as_json=True)
        else:
            hint = "" if run.ended else f"; 'ostinato run wait {id}' waits for it"
            say(f"run {id} of session {key!r} is {run.state}{hint}")
    return 0


def _options(flags: MessageFlags) -> dict[str, Any]:
    """What was given, and only that."""
    given = {**asdict(flags), "retry": None, **retry_option(flags.retry)}
    return {name: value for name, value in given.items() if value is not None}


def _from_stdin() -> str:
    try:
        return sys.stdin.buffer.read().decode().removesuffix("\n")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"standard input is not text: {error}", field="payload", hint="send UTF-8") from error


def _ended(database: OpenDatabase, id: int, timeout: str | None, *, as_json: bool) -> int:
    """Wait as a sender does: that the message was dropped, cleared away or stopped is an error."""
    if not as_json:
        sys.stdout.flush()
        say(f"waiting for run {id} to end")
    return tell_end(database, database.ask(database.services.sessions.wait(id, timeout=timeout)), as_json=as_json)


@app.command
def ls(
    *,
    search: str | None = None,
    busy: bool = False,
    limit: Limit = 100,
    common: Common = NO_COMMON,
) -> None:
    """List sessions, the latest message first.

    Parameters
    ----------
    search
        Only those whose key contains this.
    busy
        Only those with something queued or under way.
    """
    with opened(common) as database:
        found = database.ask(database.services.sessions.list(search=search, busy=busy, limit=limit))
        print_sessions(database, found, as_json=common.json)


@app.command
def show(key: SessionKey, /, *, common: Common = NO_COMMON) -> None:
    """Show a session: its settings, its running and queued messages, and its latest events."""
    with opened(common) as database:
        print_session(database, database.ask(database.services.sessions.get(key)), as_json=common.json)


@app.command
def stop(key: SessionKey, /, *, common: Common = NO_COMMON) -> None:
    """Cancel the oldest active run of a session. The next one gets its turn."""
    _stop(common, key, lambda database: database.ask(database.services.sessions.stop(key)))


@app.command
def stop_all(key: SessionKey, /, *, common: Common = NO_COMMON) -> None:
    """Cancel what is running in a session and drop what waits. Nothing sent before this will start."""
    _stop(common, key, lambda database: database.ask(database.services.sessions.stop_all(key)))


def _stop(common: Common, key: str, verb: Callable[[OpenDatabase], Stopped]) -> None:
    with opened(common) as database:
        stopped = verb(database)
    counts = f"{stopped.cancelled} cancelled, {stopped.dropped} dropped"
    is_idle = not stopped.cancelled and not stopped.dropped
    text = f"nothing to stop in session {key!r}: {counts}" if is_idle else f"stopped: session {key!r}, {counts}"
    tell({"key": key, "cancelled": stopped.cancelled, "dropped": stopped.dropped}, text, as_json=common.json)


@app.command
def events(
    key: str | None = None,
    /,
    *,
    after: int = 0,
    follow: Annotated[bool, Parameter(alias="-f")] = False,
    common: Common = NO_COMMON,
) -> None:
    """Print the events of a session, or of all, oldest first, one on each line.

    Parameters
    ----------
    key
        The session. [default: all of them]
    after
        Only events with a greater number, such as the last one that you saw.
    follow
        Go on with new events, until Ctrl-C.
    """
    with opened(common) as database:
        last = after
        while True:
            page = database.ask(database.services.sessions.events(key, after=last, limit=_PAGE))
            for event in page:
                print_event(database, event, as_json=common.json)
                last = event.id
            if len(page) == _PAGE:
                continue
            if not follow:
                break
            time.sleep(_LOOK_SECONDS)
        if last == after and key is not None:
            database.ask(database.services.sessions.get(key))  # nothing to tell: because there is no such session?
