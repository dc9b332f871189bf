"""One request with its redirects, up to the head of the answer that counts; its body is read piece by piece.

It blocks, on a thread of its own, and speaks through a Line, which can be stopped from outside.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from email.message import Message
from http import HTTPStatus
from http.client import HTTPException, HTTPResponse, IncompleteRead
from typing import Any, cast

from ostinato.execution.executors.http.line import Line
from ostinato.execution.executors.http.request import REDIRECTS, Refusal, Request, Target, Trouble, next_request
from ostinato.plurals import counted

__all__ = ["Answer", "exchange"]

MOST_REDIRECTS = 10
MOST_OF_HEAD = 256 * 1024
"""How many bytes of headers are taken."""
PIECE = 64 * 1024
MOST_AROUND_PIECE = 256 * 1024
"""How many bytes are taken for one piece, with the marks of chunks and what follows the last."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The head of an answer, and the way to its body."""

    target: Target
    status: int
    phrase: str
    headers: Message
    response: HTTPResponse
    line: Line

    def pieces(self) -> Iterator[bytes]:
        """The body as it comes; Trouble if it ends too early."""
        left = self.response.length
        while left is None or left > 0:
            self.line.allow(PIECE + MOST_AROUND_PIECE)
            try:
                piece = self.response.read1(PIECE if left is None else min(PIECE, left))
            except IncompleteRead as error:
                raise Trouble(f"the answer of {self.target.shown} broke off") from error
            except (OSError, HTTPException, Trouble) as error:
                raise Trouble(f"the answer of {self.target.shown} broke off: {_words(error)}") from error
            if not piece:
                if left is not None:
                    raise Trouble(
                        f"the answer of {self.target.shown} broke off: {counted(left, 'byte is', 'bytes are')} missing"
                    )
                return
            if left is not None:
                left -= len(piece)
            yield piece


def exchange(request: Request, line: Line, is_expected: Callable[[int], bool]) -> Answer:
    """Send it, and what redirects make of it. A redirect that is expected is not followed."""
    first = request.target
    for hop in range(MOST_REDIRECTS + 1):
        try:
            answer = _send(request, line)
        except Refusal as error:
            raise Refusal(f"{first.shown} redirects, but {error}" if hop else str(error)) from error
        location = answer.headers.get("Location")
        if answer.status not in REDIRECTS or location is None or is_expected(answer.status):
            return answer
        request = next_request(request, answer.status, location)
    raise Refusal(f"{first.shown} redirects more than {MOST_REDIRECTS} times, the last time to {request.target.shown}")


def _send(request: Request, line: Line) -> Answer:
    target = request.target
    line.open(target)
    try:
        line.sendall(request.head)
        if request.body:
            # Who answers before it has read all says why: 413, say.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                line.sendall(request.body)
        line.allow(MOST_OF_HEAD)
        response = _head(line, request.method)
    except (OSError, HTTPException, Trouble) as error:
        raise Trouble(f"{target.shown} did not answer: {_words(error)}") from error
    return Answer(target, response.status, _phrase(response), response.headers, response, line)


def _head(line: Line, method: str) -> HTTPResponse:
    while True:
        response = HTTPResponse(cast(Any, line), method=method)
        response.begin()
        if line.is_at_end:  # http.client takes it for the end of the headers
            raise Trouble("its headers broke off")
        # Early hints and their like come before the answer.
        if not 100 < response.status < 200 or response.status == HTTPStatus.SWITCHING_PROTOCOLS:
            return response


def _phrase(response: HTTPResponse) -> str:
    said = "".join(letter for letter in response.reason if letter.isprintable()).strip()
    said = said if len(said) <= 60 else said[:59] + "…"  # which tells the mask where a secret may be cut
    if said or response.status not in set(HTTPStatus):
        return said
    return HTTPStatus(response.status).phrase


def _words(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "it fell silent"
    if isinstance(error, OSError):
        return error.strerror or str(error) or type(error).__name__
    if isinstance(error, Trouble):
        return str(error)
    text = " ".join(str(error).split())
    said = f" ({text if len(text) <= 100 else text[:99] + '…'!r})" if text else ""
    return f"what came is not HTTP: {type(error).__name__}{said}"
