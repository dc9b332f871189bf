"""A local server that speaks as much of Telegram's Bot API as the bot uses, and fails as the real one does.

It keeps updates until they are confirmed by an offset, ends an older getUpdates with 409 when a newer one comes, and
notes what it is sent. A test writes, edits and presses as people in chats do, and waits for what the bot says.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

__all__ = ["TOKEN", "Said", "TelegramServer", "telegram_server"]

TOKEN = "12345:AAbbCCddEEffGGhhIIjjKKllMMnnOOpp"
NAME = "ostinato_test_bot"
PATIENCE = 60.0


@dataclass(frozen=True)
class Said:
    """A message of the bot."""

    id: int
    chat: int
    text: str
    buttons: dict[str, str] = field(default_factory=dict)
    """What they stand for, by what they say."""
    is_edit: bool = False


@dataclass
class Fault:
    """What becomes of the next requests of a method."""

    method: str
    times: int
    status: int | None = None
    """None: the connection is dropped."""
    retry_after: int | None = None
    after_effect: bool = False
    """It is done, and only the answer is lost."""
    after: int = 0
    """So many go well before."""


class TelegramServer:
    """All methods may be called from any thread."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._updates: list[dict[str, Any]] = []
        self._number = 100
        self._message = 0
        self._polling = 0
        self.said: list[Said] = []
        self.calls: list[tuple[str, dict[str, str]]] = []
        self.conflicts = 0
        self.faults: list[Fault] = []
        self.is_open = True
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    # People

    def write(self, chat: int, text: str, *, user: int | None = None, **more: Any) -> int:
        """Somebody writes a message; answers the number of the update."""
        return self._add({"message": self._told(chat, text, user, **more)})

    def edit(self, chat: int, text: str, *, user: int | None = None) -> int:
        return self._add({"edited_message": self._told(chat, text, user)})

    def press(self, chat: int, data: str, *, user: int | None = None, message: int = 1) -> int:
        """Somebody presses a button under a message of the bot, or says so."""
        under = {"message_id": message, "date": 1, "chat": _chat(chat), "text": "…"}
        query = {"id": f"q{message}", "from": _user(user or chat), "chat_instance": "1", "data": data, "message": under}
        return self._add({"callback_query": query})

    def again(self, update: int, body: dict[str, Any]) -> None:
        """The same update once more, as after a confirmation that was lost."""
        with self._changed:
            self._updates.append({"update_id": update, **body})
            self._changed.notify_all()

    def add_raw(self, body: dict[str, Any]) -> int:
        return self._add(body)

    def _told(self, chat: int, text: str, user: int | None, **more: Any) -> dict[str, Any]:
        self._message += 1
        from_user = _user(chat if user is None else user)
        return {"message_id": self._message, "date": 1, "chat": _chat(chat), "from": from_user, "text": text, **more}

    def _add(self, body: dict[str, Any]) -> int:
        with self._changed:
            self._number += 1
            self._updates.append({"update_id": self._number, **body})
            self._changed.notify_all()
            return self._number

    # What tests wait for

    def wait_until(self, is_so: Callable[[], Any], what: str = "it") -> Any:
        """Wait for something that the bot does; it fails if that takes a minute."""
        until = time.monotonic() + PATIENCE
        with self._changed:
            while not (found := is_so()):
                left = until - time.monotonic()
                assert left > 0, f"{what} did not happen; the bot said {self.said[-5:]}"
                self._changed.wait(min(left, 0.2))
            return found

    def wait_for(self, words: str, chat: int | None = None) -> Said:
        """The first message of the bot with these words."""
        found: Said = self.wait_until(lambda: self._find(words, chat), f"a message with {words!r}")
        return found

    def _find(self, words: str, chat: int | None) -> Said | None:
        return next((one for one in self.said if words in one.text and chat in (None, one.chat)), None)

    def wait_handled(self, update: int) -> None:
        """Until the bot has confirmed an update."""
        self.wait_until(lambda: all(one["update_id"] > update for one in self._updates), f"update {update}")

    def count(self, method: str) -> int:
        return sum(name == method for name, _ in self.calls)

    def fail(self, method: str, status: int | None, times: int = 1, **more: Any) -> None:
        """Fail the next requests of a method: with a status, or by dropping the connection."""
        with self._changed:
            self.faults.append(Fault(method, times, status, **more))
            self._changed.notify_all()

    def forget_faults(self) -> None:
        with self._changed:
            self.faults.clear()
            self._changed.notify_all()

    # The bot

    def answer(self, token: str, method: str, given: dict[str, str]) -> tuple[int, dict[str, Any]] | None:
        """The answer to a request; None drops the connection."""
        with self._changed:
            self.calls.append((method, given))
            self._changed.notify_all()
            if token != TOKEN:
                return _error(401, "Unauthorized")
            fault = self._fault(method)
            if fault is not None and not fault.after_effect:
                return self._failed(fault)
            answered = self._get_updates(given) if method == "getUpdates" else self._do(method, given)
            self._changed.notify_all()
            return answered if fault is None else self._failed(fault)

    def _fault(self, method: str) -> Fault | None:
        fault = next((one for one in self.faults if one.method == method), None)
        if fault is not None and fault.after:
            fault.after -= 1
            return None
        if fault is not None:
            fault.times -= 1
            if fault.times <= 0:
                self.faults.remove(fault)
        return fault

    def _failed(self, fault: Fault) -> tuple[int, dict[str, Any]] | None:
        if fault.status is None:
            return None
        more = {} if fault.retry_after is None else {"parameters": {"retry_after": fault.retry_after}}
        return fault.status, {"ok": False, "error_code": fault.status, "description": "as the test says", **more}

    def _get_updates(self, given: dict[str, str]) -> tuple[int, dict[str, Any]] | None:
        offset = int(given.get("offset", 0))
        self._updates = [one for one in self._updates if one["update_id"] >= offset]
        self._polling += 1
        mine = self._polling
        self._changed.notify_all()
        until = time.monotonic() + float(given.get("timeout", 0))
        while not self._updates and self.is_open and time.monotonic() < until:
            self._changed.wait(max(0.0, min(0.2, until - time.monotonic())))
            if self._polling != mine:
                self.conflicts += 1
                return _error(409, "Conflict: terminated by other getUpdates request")
            if any(one.method == "getUpdates" for one in self.faults) and (fault := self._fault("getUpdates")):
                return self._failed(fault)
        return 200, {"ok": True, "result": self._updates[:100]}

    def _do(self, method: str, given: dict[str, str]) -> tuple[int, dict[str, Any]]:
        match method:
            case "getMe":
                return _done({"id": 12345, "is_bot": True, "first_name": "Ostinato", "username": NAME})
            case "sendMessage" | "editMessageText":
                return self._say(given, is_edit=method == "editMessageText")
            case "deleteWebhook" | "answerCallbackQuery" | "sendChatAction":
                return _done(True)
        return _error(404, f"Not Found: method {method}")

    def _say(self, given: dict[str, str], *, is_edit: bool) -> tuple[int, dict[str, Any]]:
        text, chat = given.get("text", ""), int(given["chat_id"])
        if not text.strip():
            return _error(400, "Bad Request: message text is empty")
        if len(text.encode("utf-16-le")) // 2 > 4096:
            return _error(400, "Bad Request: message is too long")
        rows = json.loads(given.get("reply_markup", "{}")).get("inline_keyboard", [])
        buttons = {one["text"]: one["callback_data"] for row in rows for one in row}
        if any(len(data.encode()) > 64 for data in buttons.values()):
            return _error(400, "Bad Request: BUTTON_DATA_INVALID")
        self._message += 1
        id = int(given.get("message_id", self._message))
        self.said.append(Said(id, chat, text, buttons, is_edit))
        return _done({"message_id": id, "date": 1, "chat": _chat(chat), "text": text})


def _chat(chat: int) -> dict[str, Any]:
    if chat < 0:
        return {"id": chat, "type": "supergroup", "title": "a group"}
    return {"id": chat, "type": "private", "first_name": "Ada"}


def _user(user: int) -> dict[str, Any]:
    return {"id": user, "is_bot": False, "first_name": "Ada", "username": f"user{user}"}


def _done(result: Any) -> tuple[int, dict[str, Any]]:
    return 200, {"ok": True, "result": result}


def _error(status: int, description: str) -> tuple[int, dict[str, Any]]:
    return status, {"ok": False, "error_code": status, "description": description}


@contextmanager
def telegram_server() -> Iterator[TelegramServer]:
    """A server on a free port, for as long as a test needs it."""
    server = TelegramServer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
            given = {name: values[-1] for name, values in parse_qs(body, keep_blank_values=True).items()}
            _, bot, method = self.path.split("/")
            answered = server.answer(bot.removeprefix("bot"), method, given)
            if answered is None:
                self.close_connection = True
                self.connection.close()
                return
            status, said = answered
            content = json.dumps(said).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def handle(self) -> None:
            try:
                super().handle()
            except (OSError, ValueError):
                self.close_connection = True  # the bot went away, or the test cut the line

        def finish(self) -> None:
            try:
                super().finish()
            except (OSError, ValueError):
                self.close_connection = True

        def log_message(self, *_: Any) -> None:
            """Nobody reads it."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def shutdown_request(self, request: Any) -> None:
            try:
                super().shutdown_request(request)
            except OSError:
                self.close_request(request)

    http = Server(("127.0.0.1", 0), Handler)
    server.port = http.server_port
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.is_open = False
        http.shutdown()
        http.server_close()
        thread.join(PATIENCE)
