"""`ostinato session`: every verb of a session but `chat.py`. Printing is in `view.py`."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from ostinato.cli.console import emit, read_stdin, say, tell
from ostinato.cli.open_database import OpenDatabase, opened
from ostinato.cli.options import (
    NO_COMMON,
    NO_MESSAGE,
    NO_QUEUE,
    Common,
    Limit,
    MessageFlags,
    QueueFlags,
    SessionKey,
    Wait,
    WaitTime,
)
from ostinato.cli.run import tell_end
from ostinato.cli.run_view import print_run
from ostinato.cli.session.answer import answer_lines, print_answer
from ostinato.cli.session.chat import chat
from ostinato.cli.session.message import NOBODY, RecipientFlags, message_options, recipient_of, warn_of_missing
from ostinato.cli.session.view import print_event, print_session, print_sessions, stopped_line
from ostinato.cli.work import json_or_text
from ostinato.errors import InvalidInput

if TYPE_CHECKING:
    from ostinato.models.session import Stopped

__all__ = ["app"]

app = App(name="session", help="Send messages to sessions and chat in them; list, show, stop and follow them.")
app.command(chat)

_LOOK_SECONDS = 0.25
_PAGE = 1_000


@app.command
def send(
    key: str,
    payload: Annotated[str, Parameter(allow_leading_hyphen=True)],
    /,
    *,
    to: RecipientFlags = NOBODY,
    project: str | None = None,
    queue: QueueFlags = NO_QUEUE,
    flags: MessageFlags = NO_MESSAGE,
    wait: Wait = False,
    timeout: WaitTime = None,
    common: Common = NO_COMMON,
) -> int:
    """Put a message into a session, for a task or an agent.

    Prints the number of the run that carries it; with --agent and --wait, the answer.

    Parameters
    ----------
    key
        The session, such as dm:42; the first message creates it.
    payload
        The prompt of an agent, or what a task gets: JSON if it is valid JSON, otherwise text. '-' reads standard input.
    project
        The project that its run belongs to, in whose folder an agent works; see 'ostinato project'.
    """
    if timeout is not None and not wait:
        hint = "add --wait, or give --run-timeout for how long its run may take"
        raise InvalidInput("--timeout is how long --wait waits", field="timeout", hint=hint)
    recipient = recipient_of(to, project)
    if recipient is None:
        raise InvalidInput("a message goes to a task or to an agent", field="task", hint="give --task NAME or --agent")
    text = read_stdin("payload") if payload == "-" else payload
    message = text if recipient.task is None else json_or_text(text)
    options = {name: value for name, value in asdict(queue).items() if value is not None} | message_options(flags)
    prints_answer = wait and recipient.task is None
    with opened(common, create=True) as database:
        id = database.ask(database.services.sessions.send(key, message, **recipient._asdict(), **options))
        warn_of_missing(database, recipient)
        if not common.json and not prints_answer:
            emit(str(id))
        if wait:
            return _ended(database, id, timeout, as_json=common.json, prints_answer=prints_answer)
        run = database.ask(database.services.runs.get(id))
        if common.json:
            print_run(database, run, as_json=True)
        else:
            hint = "" if run.ended else f"; 'ostinato run wait {id}' waits for it"
            say(f"run {id} of session {key!r} is {run.state}{hint}")
    return 0


def _ended(database: OpenDatabase, id: int, timeout: str | None, *, as_json: bool, prints_answer: bool) -> int:
    """Wait as a sender does: that the message was dropped, cleared away or stopped is an error."""
    if not as_json:
        sys.stdout.flush()
        say(f"waiting for run {id} to end")
    run = database.ask(database.services.sessions.wait(id, timeout=timeout))
    if prints_answer and not as_json and run.state == "succeeded":
        print_answer(run, answer_lines(run))
    return tell_end(database, run, as_json=as_json)


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
    answer = {"key": key, "cancelled": stopped.cancelled, "dropped": stopped.dropped}
    tell(answer, stopped_line(key, stopped), as_json=common.json)


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
