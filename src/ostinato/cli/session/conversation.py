"""The inside of `ostinato session chat`: messages are sent, answers followed and commands obeyed, until it is left.

Nothing of it is kept here: the runs go on without the chat, and the next one finds the conversation again.
"""

from __future__ import annotations

import asyncio
import re
import signal
from collections import deque
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

from ostinato.cli.console import emit_json_line, say
from ostinato.cli.output import OutputPrinter
from ostinato.cli.run_view import tell
from ostinato.cli.session.answer import answer_lines, print_answer
from ostinato.cli.session.view import context_line, stopped_line, usage_line
from ostinato.errors import OstinatoError

if TYPE_CHECKING:
    from ostinato.cli.open_database import OpenDatabase
    from ostinato.cli.options import Mode
    from ostinato.cli.session.message import Recipient
    from ostinato.cli.session.typed_lines import TypedLines
    from ostinato.models.ids import RunId
    from ostinato.models.run import Run
    from ostinato.service.services import Services

__all__ = ["Conversation"]

_HELP = """\
/stop      stop the answer that is being given (as Ctrl-C does)
/stop-all  stop it, and drop everything that waits in this session
/cost      what this session has used, and how full its context is
/quit      leave (as Ctrl-D does); what is under way goes on
/help      this list
Anything else is sent; a line that ends with \\ goes on in the next."""
_COMMAND = re.compile(r"/[a-z-]+")


class _Sign(Enum):
    """What happens in a chat besides messages."""

    ANSWERED = auto()
    INTERRUPTED = auto()
    """Ctrl-C."""
    LEFT = auto()
    """Nothing more will be typed."""


class Conversation:
    """A chat in one session, with one recipient."""

    def __init__(
        self,
        database: OpenDatabase,
        key: str,
        to: Recipient,
        options: Mapping[str, Any],
        mode: Mode,
        *,
        as_json: bool,
    ) -> None:
        self._database = database
        self._key = key
        self._to = to
        self._options = options
        self._mode = mode
        self._as_json = as_json
        self._open: deque[RunId] = deque()
        """Runs of ours whose answers have not been told, the next one first."""
        self._stopping: RunId | None = None
        """The one that Ctrl-C has stopped."""
        self._is_left = False
        self._has_failed = False
        self._commands = {
            "/stop": self._stop,
            "/stop-all": self._stop_all,
            "/cost": self._tell_cost,
            "/quit": self._leave,
            "/help": self._help,
        }

    def talk(self, lines: TypedLines) -> int:
        """Until it is left. Where nobody sits at a terminal, the exit code says whether all was answered."""
        while not self._is_left and (text := lines.message()) is not None:
            self._database.ask(self._attend(text, lines))
        return 1 if self._has_failed and not lines.is_terminal else 0

    async def _attend(self, text: str, lines: TypedLines) -> None:
        """Do what a message says, and whatever is said meanwhile, until everything is answered."""
        events: asyncio.Queue[str | _Sign] = asyncio.Queue()
        answering: asyncio.Task[None] | None = None
        with _interrupts(events), lines.listening(lambda line: events.put_nowait(_Sign.LEFT if line is None else line)):
            await self._take(text)
            while not self._is_left and (self._open or not events.empty()):
                if answering is None and self._open:
                    answering = asyncio.create_task(self._guarded(self._answer(self._open[0])))
                    answering.add_done_callback(lambda _: events.put_nowait(_Sign.ANSWERED))
                event = await events.get()
                if event is _Sign.ANSWERED and answering is not None:
                    self._open.popleft()
                    answering.result()
                    answering = None
                elif event is _Sign.INTERRUPTED:
                    await self._interrupted()
                elif event is _Sign.LEFT:
                    await self._leave()
                elif isinstance(event, str):
                    await self._take(event)
        if answering is not None:
            answering.cancel()

    async def _take(self, text: str) -> None:
        """A command, or a message."""
        word = text.strip()
        if word in self._commands:
            await self._guarded(self._commands[word]())
        elif _COMMAND.fullmatch(text.rstrip()):
            say(f"there is no {word}: /help lists the commands; begin with a space to send it")
        elif word:
            await self._guarded(self._send(text))

    async def _guarded(self, doing: Coroutine[Any, Any, None]) -> None:
        """What goes wrong is told, and does not end the chat."""
        try:
            await doing
        except OstinatoError as error:
            self._has_failed = True
            say(f"error: {error}", "red")

    async def _send(self, text: str) -> None:
        # One that has not started may be a burst, which this can join.
        mode: Mode = self._mode or ("interrupt" if self._open and await self._is_running(self._open[0]) else None)
        id = await self._services.sessions.send(self._key, text, **self._to._asdict(), mode=mode, **self._options)
        if id not in self._open:  # it may have joined another
            self._open.append(id)

    async def _answer(self, id: RunId) -> None:
        """Print what a run says as it says it, and its answer, if it has not said that."""
        printed, said = OutputPrinter(id, as_json=self._as_json), list[str]()
        async for line in self._services.runs.follow(id):
            printed(line)
            said.append(line.text)
        self._tell_end(await self._services.runs.get(id), said)

    def _tell_end(self, run: Run, said: list[str]) -> None:
        has_succeeded = run.state == "succeeded"
        self._has_failed = self._has_failed or not has_succeeded
        if self._as_json:
            from ostinato.service.answers import run_answer

            emit_json_line(run_answer(run, self._database.zone))
        elif not has_succeeded:
            say(tell(run), "yellow")
        else:
            if (answer := answer_lines(run)) and said[-len(answer) :] != answer:
                print_answer(run, answer)
            if run.cause == "errors":
                say(tell(run), "yellow")

    async def _interrupted(self) -> None:
        """Ctrl-C: stop what is being answered; if it was stopped before and goes on, leave."""
        if not self._open:
            return
        if self._stopping == self._open[0]:
            await self._leave()
            return
        self._stopping = self._open[0]
        await self._guarded(self._give_up(self._open[0]))

    async def _is_running(self, id: RunId) -> bool:
        return (await self._services.runs.get(id)).state == "running"

    async def _give_up(self, id: RunId) -> None:
        if await self._is_running(id):
            await self._stop()
        else:
            # It waits for its turn, or another attempt: what the session does meanwhile may be somebody else's.
            await self._services.runs.cancel(id)

    async def _stop(self) -> None:
        say(stopped_line(self._key, await self._services.sessions.stop(self._key)))

    async def _stop_all(self) -> None:
        say(stopped_line(self._key, await self._services.sessions.stop_all(self._key)))

    async def _tell_cost(self) -> None:
        session = await self._services.sessions.get(self._key)
        say(usage_line(session) or "this session has used nothing so far, as far as its runs told it")
        if (context := context_line(session)) is not None:
            say(f"context: {context}")

    async def _leave(self) -> None:
        self._is_left = True
        for id in self._open:
            say(f"run {id} goes on; 'ostinato run logs {id} -f' follows it")

    async def _help(self) -> None:
        say(_HELP)

    @property
    def _services(self) -> Services:
        return self._database.services


@contextmanager
def _interrupts(events: asyncio.Queue[str | _Sign]) -> Iterator[None]:
    """Ctrl-C is told among the events, and does not end the command."""
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, events.put_nowait, _Sign.INTERRUPTED)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)
