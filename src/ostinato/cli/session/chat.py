"""`ostinato session chat`: a small chat in the terminal. `conversation.py` is the chat itself, `typed_lines.py` reads
what is typed."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from cyclopts import Parameter

from ostinato.cli.console import say
from ostinato.cli.open_database import OpenDatabase, opened
from ostinato.cli.options import NO_COMMON, NO_MESSAGE, Common, MessageFlags, Mode, SessionKey
from ostinato.cli.session.message import (
    NOBODY,
    Recipient,
    RecipientFlags,
    message_options,
    recipient_of,
    warn_of_missing,
)
from ostinato.cli.work import NOTHING

__all__ = ["chat"]


def chat(
    key: SessionKey,
    /,
    *,
    to: RecipientFlags = NOBODY,
    project: str | None = None,
    mode: Mode = None,
    debounce: Annotated[str, Parameter(show_default=True)] = "0s",
    flags: MessageFlags = NO_MESSAGE,
    common: Common = NO_COMMON,
) -> int:
    """Chat in a session, with an agent or a task: type a line, read the answer.

    Without --agent and --task it is whoever got the session's last message, or
    else an agent. A line that ends with a backslash goes on in the next. Ctrl-C
    stops the answer; at the prompt it leaves, as Ctrl-D does. /help lists more.
    Off a terminal, lines come from standard input, each after the last answer;
    the exit code is 1 if one of them failed.

    Parameters
    ----------
    project
        The project that its runs belong to, in whose folder an agent works. [default: that of the last message]
    mode
        Wait for the turn; wait until nothing is under way and go alone; or stop and drop the others. [default:
        interrupt while an answer is given; else the settings' or the task's, or queue]
    debounce
        Lines that come within this of each other go into one run, such as 2s.
    """
    from ostinato.cli.session.conversation import Conversation
    from ostinato.cli.session.typed_lines import typed_lines

    said = {"debounce": debounce, **message_options(flags)}
    with opened(common, create=True) as database:
        recipient = recipient_of(to, project) or _last_recipient(database, key, project)
        if not common.json:
            say(f"session {key!r} with {recipient}; /help lists the commands", "dim")
        warn_of_missing(database, recipient)
        return Conversation(database, key, recipient, said, mode, as_json=common.json).talk(typed_lines())


def _last_recipient(database: OpenDatabase, key: str, project: str | None) -> Recipient:
    """Who got the last message of this session; if nobody did, an agent as it is by default."""
    from ostinato.models.work import Agent, Function

    home = None if project == NOTHING else project
    for run in database.ask(database.services.runs.list(session=key, trigger="message", limit=1)):
        place = run.project if project is None else home
        if isinstance(run.work, Function):
            return Recipient(run.work.task, None, place)
        if isinstance(run.work, Agent):
            return Recipient(None, replace(run.work, prompt=""), place)
    return Recipient(None, Agent(), home)
