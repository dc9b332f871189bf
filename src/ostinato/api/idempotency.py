"""Idempotency-Key: a POST that is sent again with the same key gets the first answer, and nothing is done twice.

The keys are somebody's own, and in the database: a repetition may come to another process. Only who may do it takes a
key, and only what was done keeps it: one whose request was refused, and can have written nothing, is given back.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from functools import partial

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ostinato.api.access import needed_role, principal_of
from ostinato.api.container import ApiContainer
from ostinato.api.problems import PROBLEM_JSON, outcome_unknown, problem, problem_answer
from ostinato.errors import InvalidInput, OstinatoError
from ostinato.logs import get_logger
from ostinato.models.access import Answer, Role
from ostinato.models.write_tracking import WriteTracking, tracking_writes

__all__ = ["IdempotencyStore", "takes_key"]

SECRET_PATHS = frozenset({"/api/login", "/api/tokens"})
"""Their answers hold secrets, which are not stored."""
SECRET_ENDS = ("/ping-key", "/badge-key")
"""The same, of any schedule."""

log = get_logger("ostinato.api")

_HEADER = "idempotency-key"
_LONGEST_KEY = 200
_LARGEST_ANSWER = 32_768
"""So many bytes of an answer are kept: with the number of keys, the bound on what one actor can fill."""
_KEPT_HEADERS = ("content-type", "location", "etag")
_NOT_KEPT = (
    "the first request with this Idempotency-Key was carried out, and its answer was too large to keep: check what "
    "it made"
)
_CONDITIONS = ("if-match", "if-none-match")


class IdempotencyStore:
    """Keeps the answers to POST requests that have a key."""

    def __init__(self, app: ASGIApp, container: ApiContainer) -> None:
        self._app = app
        self._container = container

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        key = _key_of(scope)
        if key is None:
            with tracking_writes():
                await self._app(scope, receive, send)
            return
        login = principal_of(HTTPConnection(scope)).login
        if not _may_keep(scope, login.role):
            await self._app(scope, receive, send)
            return
        body = await _read(receive)
        if body is None:
            return  # the client went away before it had sent it
        fingerprint = _fingerprint(scope, body, login.role)
        keys = self._container.services.idempotency
        begun = await keys.begin(login.who, key, fingerprint)
        if isinstance(begun, Answer):
            await _replay(begun, fingerprint)(scope, receive, send)
            return
        with tracking_writes() as writes:
            kept = _Kept(send, fingerprint, partial(keys.end, begun), writes)
            try:
                await self._app(scope, _replayed(body, receive), kept.send)
            finally:
                if not kept.is_over:
                    await kept.end_without_answer()


def _is_secret(path: str) -> bool:
    return path in SECRET_PATHS or path.endswith(SECRET_ENDS)


def _key_of(scope: Scope) -> str | None:
    if scope["type"] != "http" or scope["method"] != "POST" or _is_secret(scope["path"]):
        return None
    if not scope["path"].startswith("/api/"):
        return None
    key = Headers(scope=scope).get(_HEADER)
    if key is not None and not (1 <= len(key) <= _LONGEST_KEY and key.isascii() and key.isprintable()):
        raise InvalidInput("the Idempotency-Key is not valid", field=_HEADER, hint="give 1 to 200 ASCII characters")
    return key


def takes_key(path: str, role: Role | None) -> bool:
    """Whether a POST there is a write whose answer may be kept. What a viewer may do changes nothing that could be done
    twice: previews, a logout."""
    return path.startswith("/api/") and not _is_secret(path) and role not in (None, Role.VIEWER)


def _may_keep(scope: Scope, role: Role) -> bool:
    """Whether the address is that of a write, and whoever asks may do it."""
    for route in scope["app"].state.routes:
        if route.matches(scope)[0] is Match.FULL:
            needed = needed_role(route)
            return needed is not None and role.covers(needed) and takes_key(scope["path"], needed)
    return False


async def _read(receive: Receive) -> bytes | None:
    parts = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(parts)


def _replayed(body: bytes, receive: Receive) -> Receive:
    is_read = False

    async def replayed() -> Message:
        nonlocal is_read
        if is_read:
            return await receive()
        is_read = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replayed


def _fingerprint(scope: Scope, body: bytes, role: Role) -> str:
    """What makes a request the same one. Another role may not see the same answer, nor another condition get it."""
    headers = Headers(scope=scope)
    conditions = [", ".join(headers.getlist(name)).encode() for name in _CONDITIONS]
    parts = (scope["method"].encode(), scope["path"].encode(), scope.get("query_string", b""), role.encode())
    target = b"\n".join([*parts, *conditions])
    return hashlib.sha256(hashlib.sha256(target).digest() + body).hexdigest()


def _replay(known: Answer, fingerprint: str) -> Response:
    if known.fingerprint != fingerprint:
        detail = "this Idempotency-Key was used for another request: choose a new one for each"
        return problem_answer(problem(422, "key-reused", detail))
    if known.status is None:
        detail = "the first request with this Idempotency-Key is still under way: send it again when it has ended"
        return problem_answer(problem(409, "request-under-way", detail), {"Retry-After": "1"})
    answer = Response(known.body, known.status, known.headers)
    answer.headers["Idempotency-Replayed"] = "true"
    return answer


class _Kept:
    """Keeps an answer before its end is sent, so that whoever has it and asks again gets the same."""

    def __init__(
        self, send: Send, fingerprint: str, keep: Callable[[Answer | None], Awaitable[None]], writes: WriteTracking
    ) -> None:
        self._send = send
        self._fingerprint = fingerprint
        self._keep = keep
        self._writes = writes
        self._status = 500
        self._headers: dict[str, str] = {}
        self._body = b""
        self._size = 0
        self.is_over = False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            found = Headers(raw=list(message.get("headers", [])))
            self._headers = {name: found[name] for name in _KEPT_HEADERS if name in found}
        elif message["type"] == "http.response.body":
            self._size += len(message.get("body", b""))
            if self._size <= _LARGEST_ANSWER:
                self._body += message.get("body", b"")
            if not message.get("more_body", False):
                await self._end()
        await self._send(message)

    async def end_without_answer(self) -> None:
        """It broke, or its server stops."""
        unknown = problem_answer(outcome_unknown())
        self._status, self._body = unknown.status_code, bytes(unknown.body)
        self._size = len(self._body)
        self._headers = {"content-type": PROBLEM_JSON}
        await self._end()

    async def _end(self) -> None:
        is_done = self._status < 400 or self._writes.may_have_happened
        if is_done and self._size > _LARGEST_ANSWER:
            # That it was done is kept in any case: else it would be done again.
            too_large = problem_answer(problem(409, "answer-not-kept", _NOT_KEPT))
            self._status, self._body = too_large.status_code, bytes(too_large.body)
            self._headers["content-type"] = PROBLEM_JSON
        answer = Answer(self._fingerprint, self._status, self._headers, self._body) if is_done else None
        self.is_over = True
        try:
            await self._keep(answer)
        except OstinatoError as error:
            # What was done is done, and is told; only a repetition will not be.
            log.error("the answer for an Idempotency-Key could not be stored: %s", error)
