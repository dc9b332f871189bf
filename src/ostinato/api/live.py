"""WS /api/live: what happens, as it happens. One socket, several topics.

`service.live` finds what happened; here somebody is let in, subscribes, and gets it. Who does not read is dropped.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from functools import partial

import msgspec
from fastapi import APIRouter
from starlette.websockets import WebSocket, WebSocketDisconnect

from ostinato.api.access import Identify, address_of, authenticator_of
from ostinato.api.container import ApiContainer
from ostinato.api.problems import problem_of
from ostinato.errors import InvalidInput, NotAllowed, NotLoggedIn, OstinatoError, StoreUnavailable, TooManyAttempts
from ostinato.logs import get_logger
from ostinato.service.live.listener import Failed, Listener, Message, Pong
from ostinato.tuning import Tuning

__all__ = ["router"]

log = get_logger("ostinato.api")

router = APIRouter()

MOST_TOPICS = 50
LARGEST_MESSAGE = 65_536
CLOSE_SECONDS = 1.0

NOT_LOGGED_IN, TRY_AGAIN, TOO_LARGE = 4401, 1013, 1009
_UNKNOWN_LOGIN = "your login cannot be checked right now: try again later"
_MOST_FAILED_CHECKS = 3
_REFUSED = (NotLoggedIn, NotAllowed, TooManyAttempts)


class Login(msgspec.Struct, tag="login"):
    """A token, or the origin key of the page whose cookie came with the socket."""

    token: str | None = None
    origin_key: str | None = None


class Subscribe(msgspec.Struct, tag="subscribe"):
    topic: str
    cursor: str | None = None


class Unsubscribe(msgspec.Struct, tag="unsubscribe"):
    topic: str


class Ping(msgspec.Struct, tag="ping"):
    pass


ClientMessage = Login | Subscribe | Unsubscribe | Ping
_decoder: msgspec.json.Decoder[ClientMessage] = msgspec.json.Decoder(ClientMessage)


@router.websocket("/api/live")
async def live(websocket: WebSocket) -> None:
    """The live stream."""
    await websocket.accept()
    with suppress(WebSocketDisconnect):
        let_in = await _let_in(websocket)
        if let_in is not None:
            identify, who = let_in
            counted: Counter[str] = websocket.app.state.live_sockets
            if counted[who] >= (most := _tuning(websocket).live_sockets):
                await _close(websocket, TRY_AGAIN, f"{who[:50]} has {most} sockets open")
                return
            counted[who] += 1
            try:
                await _Conversation(websocket, identify).hold()
            finally:
                counted[who] -= 1
                if not counted[who]:
                    del counted[who]


async def _let_in(websocket: WebSocket) -> tuple[Identify, str] | None:
    """How to ask who listens, now and later, and who it is; None if nobody known came, and the socket is closed."""
    try:
        # A cookie is not looked at yet: what it needs beside it comes with a message, since the page cannot give a
        # socket a header.
        identify = authenticator_of(websocket).by_header(websocket) or await _by_message(websocket)
        principal = await identify()
    except OstinatoError as error:
        await websocket.send_text(_text(Failed(None, error)))
        if isinstance(error, _REFUSED):
            await _close(websocket, NOT_LOGGED_IN, "not logged in")
        else:
            await _close(websocket, TRY_AGAIN, _UNKNOWN_LOGIN)
        return None
    except Exception:  # of the callback that says who is logged in to the app around this one
        log.exception("a socket is closed: it cannot be found out who it is of")
        await _close(websocket, TRY_AGAIN, _UNKNOWN_LOGIN)
        return None
    return identify, principal.login.who


async def _by_message(websocket: WebSocket) -> Identify:
    """With a token, or the key beside the cookie, in the first message, which has to come soon."""
    seconds = _tuning(websocket).live_login_seconds
    try:
        async with asyncio.timeout(seconds):
            text = await _receive(websocket)
    except TimeoutError:
        raise NotLoggedIn(f"no login arrived within {seconds:g} s: send a login first") from None
    try:
        first = _read(text)
    except InvalidInput:
        first = None
    authenticator = authenticator_of(websocket)
    match first:
        case Login(token=str(token)):
            return partial(authenticator.by_token, token, address_of(websocket))
        case Login(origin_key=str(key)):
            return partial(authenticator.by_page, websocket, key)
        case _:
            raise NotLoggedIn('log in first: send {"type": "login", "token": "ost_…"}')


class _Conversation:
    """One socket that was let in: it hears, it tells, and now and then it is asked who it is."""

    def __init__(self, websocket: WebSocket, identify: Identify) -> None:
        container: ApiContainer = websocket.app.state.container
        self._websocket = websocket
        self._tuning = container.settings.tuning
        self._identify = identify
        self._hub = container.services.live
        self._listener = Listener()

    async def hold(self) -> None:
        """Until the other end goes, is dropped, or may not listen any more."""
        tasks = [asyncio.ensure_future(step) for step in (self._hear(), self._tell(), self._look_again())]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._hub.leave(self._listener)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        for task in done:
            code, reason = task.result()
            if code is not None:
                await _close(self._websocket, code, reason)
                return

    async def _hear(self) -> tuple[int | None, str]:
        """Do what the other end asks for."""
        while True:
            try:
                text = await _receive(self._websocket)
            except WebSocketDisconnect:
                return None, "the client has disconnected"
            if len(text) > LARGEST_MESSAGE:
                return TOO_LARGE, "a message may have at most 64 KB"
            topic = None
            try:
                asked = _read(text)
                if isinstance(asked, Subscribe | Unsubscribe):
                    topic = asked.topic[:200]
                await self._do(asked)
            except OstinatoError as error:
                self._listener.put(Failed(topic, error))

    async def _do(self, asked: ClientMessage) -> None:
        match asked:
            case Subscribe():
                topics = self._listener.topics
                if len(topics) >= MOST_TOPICS and asked.topic not in topics:
                    raise InvalidInput(
                        f"a socket takes at most {MOST_TOPICS} topics", field="topic", hint="unsubscribe one"
                    )
                await self._hub.subscribe(self._listener, asked.topic, asked.cursor)
            case Unsubscribe():
                self._hub.unsubscribe(self._listener, asked.topic)
            case Ping():
                self._listener.put(Pong())
            case Login():
                raise InvalidInput("you are logged in already", field="type", hint="open another socket")

    async def _tell(self) -> tuple[int | None, str]:
        """Send what the listener gets; nobody waits for an end that does not read."""
        while (message := await self._listener.take()) is not None:
            try:
                async with asyncio.timeout(self._tuning.live_send_seconds):
                    await self._websocket.send_text(_text(message))
            except TimeoutError:
                break
            except WebSocketDisconnect:
                return None, "the client has disconnected"
        return TRY_AGAIN, "the client does not read: reconnect and load again"

    async def _look_again(self) -> tuple[int | None, str]:
        """Whether it still may listen. A host that cannot say so is asked again, but not for ever."""
        failed = 0
        while failed < _MOST_FAILED_CHECKS:
            await asyncio.sleep(self._tuning.live_identify_seconds)
            try:
                await self._identify()
            except _REFUSED:
                return NOT_LOGGED_IN, "the login or the token is no longer valid"
            except StoreUnavailable as error:
                log.warning("the login of an open socket cannot be checked right now: %s", error)
            except Exception as error:
                failed += 1
                log.warning("who() cannot say whose an open socket is: %r", error)
            else:
                failed = 0
        return TRY_AGAIN, _UNKNOWN_LOGIN


def _tuning(websocket: WebSocket) -> Tuning:
    container: ApiContainer = websocket.app.state.container
    return container.settings.tuning


async def _receive(websocket: WebSocket) -> str:
    """The next message as text."""
    message = await websocket.receive()
    if message["type"] == "websocket.disconnect":
        raise WebSocketDisconnect(message.get("code", 1005))
    text: str | None = message.get("text")
    return text if text is not None else (message.get("bytes") or b"").decode("utf-8", "replace")


def _read(text: str) -> ClientMessage:
    try:
        return _decoder.decode(text)
    except msgspec.MsgspecError as error:
        raise InvalidInput(
            f"this message cannot be read: {error}",
            field="type",
            hint='send {"type": "subscribe", "topic": "overview"}',
        ) from None


def _text(message: Message) -> str:
    if isinstance(message, Failed):
        return msgspec.json.encode(
            {"type": "error", "topic": message.topic, "problem": problem_of(message.error)}
        ).decode()
    return msgspec.json.encode(message).decode()


async def _close(websocket: WebSocket, code: int, reason: str) -> None:
    """Close; one that does not read may never hear of it."""
    with suppress(TimeoutError, RuntimeError, WebSocketDisconnect):
        async with asyncio.timeout(CLOSE_SECONDS):
            await websocket.close(code, reason)
