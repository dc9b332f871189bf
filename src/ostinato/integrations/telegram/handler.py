"""One update, from its arrival to its answer: who is it, may they, what is it, do it once, answer.

`poller.py` hands updates over in their order, and confirms those that this has not given back.
"""

from __future__ import annotations

import asyncio
import secrets

from ostinato import failpoints
from ostinato.clock import Clock
from ostinato.config import Settings
from ostinato.errors import InvalidInput, NotAllowed, OstinatoError, OutcomeUnknown, StoreUnavailable
from ostinato.integrations.telegram.allow_list import AllowList
from ostinato.integrations.telegram.buttons import Buttons
from ostinato.integrations.telegram.commands import Commands
from ostinato.integrations.telegram.conversation import Conversation
from ostinato.integrations.telegram.incoming import Caller, Incoming, IncomingKind
from ostinato.integrations.telegram.parsing import Command, names_bot, parse_command
from ostinato.integrations.telegram.schedule_commands import Verb
from ostinato.integrations.telegram.views import Reply
from ostinato.logs import get_logger
from ostinato.models.access import Answer
from ostinato.models.write_tracking import tracking_writes
from ostinato.notifications.telegram_api import LONGEST, TelegramClient, TelegramError, parts_of
from ostinato.service.audit import acting
from ostinato.service.permissions import require_role
from ostinato.service.services import Services

__all__ = ["UpdateHandler"]

log = get_logger("ostinato.telegram")

_PATIENCE = 60.0
"""An answer waits so many seconds if Telegram asks for it: nobody sends it again."""
_STOPS = ("stop", "stopall")
_INTERRUPTED = Reply("This was interrupted by a restart: look whether it was done, and send it again if not.")
_UNKNOWN = Reply("The database was lost meanwhile: look whether it was done, and send it again if not.")
_ONLY_TEXT = Reply("I can only read text.")


class UpdateHandler:
    """Does what people in chats ask for."""

    def __init__(self, services: Services, settings: Settings, clock: Clock, client: TelegramClient) -> None:
        self._services = services
        self._client = client
        self._allowed = AllowList(settings.telegram.chats, services.audit, clock)
        self._commands = Commands(services, settings)
        self._buttons = Buttons(services)
        self.conversation = Conversation(services, settings, client)
        self._patience = settings.tuning.telegram_command_seconds
        self._under_way: set[asyncio.Task[None]] = set()
        self.bot = ""
        """What the bot is called, in groups with other bots."""

    async def handle(self, incoming: Incoming) -> None:
        """All of it. Raises StoreUnavailable if nothing was done: it has to come again."""
        caller = self._allowed.caller_of(incoming)
        if caller is None:
            await self._allowed.note_stranger(incoming)
            return
        if incoming.kind is IncomingKind.EDIT:
            return  # what it said before was done
        command = self._command(incoming)
        if command is not None and self._is_for_another(incoming, command):
            return
        with acting(caller.actor):
            if command is None and incoming.kind is IncomingKind.MESSAGE:
                await self._text(caller, incoming)
                return
            task = asyncio.create_task(self._verb(caller, incoming, command))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        # A command may take long: the next is not kept waiting, least of all a stop.
        done, _ = await asyncio.wait({task}, timeout=self._patience)
        if done:
            task.result()
        else:
            task.add_done_callback(_log_failure)

    async def close(self, seconds: float) -> None:
        """Let what is under way end, within this time."""
        await self.conversation.close()
        if self._under_way:
            await asyncio.wait(self._under_way, timeout=seconds)

    def _command(self, incoming: Incoming) -> Command | None:
        if incoming.is_forward or incoming.kind is not IncomingKind.MESSAGE:
            return None
        return parse_command(incoming.text, self.bot)

    def _is_for_another(self, incoming: Incoming, command: Command) -> bool:
        """Other bots of a group have commands of their own."""
        return not incoming.is_private and not command.is_addressed and not self._commands.has(command)

    async def _text(self, caller: Caller, incoming: Incoming) -> None:
        text = incoming.text.strip()
        mention = f"@{self.bot}"
        if self.bot and text.lower().startswith(mention.lower()):
            text = text[len(mention) :].strip()
        if not incoming.is_forward and text.startswith("/") and not caller.is_private:
            return  # for another bot
        if not text:
            if caller.is_private:
                await self._say(caller, _ONLY_TEXT)
            return
        is_addressed = self._is_addressed(incoming)
        try:
            reply = await self.conversation.send(caller, incoming.update, text)
        except StoreUnavailable:
            raise
        except OstinatoError as error:
            reply = await self._refusal(incoming, error) if is_addressed else None
        if reply is not None and is_addressed:
            await self._say(caller, reply)

    def _is_addressed(self, incoming: Incoming) -> bool:
        """Whether somebody speaks to the bot: in a group, people talk with each other."""
        is_reply = bool(self.bot) and incoming.answers.lower() == self.bot.lower()
        return incoming.is_private or is_reply or names_bot(incoming.text, self.bot)

    async def _verb(self, caller: Caller, incoming: Incoming, command: Command | None) -> None:
        reply = await self._done(caller, incoming, command)
        if command is not None and command.name in _STOPS:
            await self.conversation.stopped(caller)
        if command is None:
            await self._answer_button(incoming)
            if self._buttons.ends_question(incoming.text):
                await self._replace(caller, incoming, reply)
                return
        await self._say(caller, reply)

    async def _done(self, caller: Caller, incoming: Incoming, command: Command | None) -> Reply:
        try:
            verb, rest = self._buttons.find(incoming.text) if command is None else self._commands.find(command)
            require_role(caller.who, caller.role, verb.role)
            if verb.writes:
                return await self._once(caller, incoming.update, verb, rest)
            return await verb.do(caller, rest)
        except StoreUnavailable:
            raise
        except OstinatoError as error:
            return await self._refusal(incoming, error)

    async def _once(self, caller: Caller, update: int, verb: Verb, rest: str) -> Reply:
        """Do it unless it was begun before: an update may come again, also to another node."""
        keys = self._services.idempotency
        # A print that no other has: whoever comes second takes nothing over, however long it takes.
        begun = await keys.begin(caller.who, f"telegram:{update}", secrets.token_hex(16))
        if isinstance(begun, Answer):
            return _INTERRUPTED if begun.status is None else Reply(begun.body.decode())
        with tracking_writes() as writes:
            try:
                reply = await verb.do(caller, rest)
            except StoreUnavailable as error:
                if not writes.may_have_happened and not isinstance(error, OutcomeUnknown):
                    await keys.end(begun, None)
                    raise
                reply = _UNKNOWN
            except OstinatoError as error:
                await keys.end(begun, Answer("", 400, {}, str(error).encode()))
                raise
        failpoints.reach("telegram.done")
        await keys.end(begun, Answer("", 200, {}, reply.text.encode()))
        return reply

    async def _refusal(self, incoming: Incoming, error: OstinatoError) -> Reply:
        if isinstance(error, NotAllowed):
            await self._allowed.note_denial(incoming)
        text = str(error)
        return Reply(text if isinstance(error, InvalidInput) or text.endswith(".") else f"{text}.")

    async def _say(self, caller: Caller, reply: Reply) -> None:
        """What cannot be said is in the log: what was done is done."""
        try:
            *first, last = parts_of(reply.text, LONGEST) or ["…"]
            for part in first:
                await self._client.send(caller.chat, part, patience=_PATIENCE)
            await self._client.send(caller.chat, last, reply.buttons, patience=_PATIENCE)
        except TelegramError as error:
            log.warning("chat %s was not answered: %s", caller.chat, error)

    async def _answer_button(self, incoming: Incoming) -> None:
        try:
            await self._client.answer_button(incoming.button)
        except TelegramError as error:
            log.debug("the press of a button was not answered: %s", error)

    async def _replace(self, caller: Caller, incoming: Incoming, reply: Reply) -> None:
        try:
            await self._client.replace(caller.chat, incoming.message, parts_of(reply.text)[0])
        except TelegramError as error:
            log.debug("the question in chat %s stays: %s", caller.chat, error)  # it is too old, say
            await self._say(caller, reply)


def _log_failure(task: asyncio.Task[None]) -> None:
    """Of a command that nobody waits for any more."""
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("a command from a chat failed: %s", error)
