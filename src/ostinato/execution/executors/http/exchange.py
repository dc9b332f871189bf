"""One request with its redirects, up to the head of the answer that counts; its body is read piece by piece.

httpcore2 speaks HTTP, through a Line, which goes nowhere but to addresses that were judged. Every request has a
connection of its own: none is kept for another.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from http import HTTPStatus

import httpcore2

from ostinato.execution.executors.http.line import Line, words
from ostinato.execution.executors.http.request import REDIRECTS, Refusal, Request, Target, Trouble, next_request
from ostinato.plurals import counted

__all__ = ["Answer", "exchange"]

MOST_REDIRECTS = 10
MOST_AT_ONCE = 96 * 1024
"""How many bytes are taken for the head of an answer, with TLS and hints before it, and for one piece of its body, with
the marks of chunks and what follows the last. Less than h11 takes."""
_LATE = "it fell silent"


@dataclass(frozen=True, slots=True)
class Answer:
    """The head of an answer, and the way to its body."""

    target: Target
    status: int
    phrase: str
    headers: Mapping[str, str]
    """Their names in small letters; of several of one name the first."""
    response: httpcore2.Response
    line: Line

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        """The body as it comes; Trouble if it ends too early."""
        received = 0
        self.line.allowance = MOST_AT_ONCE
        try:
            async with aclosing(self.response.aiter_stream()) as pieces:
                async for piece in pieces:
                    received += len(piece)
                    yield piece
                    self.line.allowance = MOST_AT_ONCE
        except (OSError, httpcore2.RemoteProtocolError) as error:
            said = self._missing(received) if self.line.is_at_end else f": {words(error, _LATE)}"
            raise Trouble(f"the answer of {self.target.shown} broke off{said}") from error

    def _missing(self, received: int) -> str:
        length = self.headers.get("content-length", "")
        if "transfer-encoding" in self.headers or not length.isdecimal():
            return ""
        return f": {counted(int(length) - received, 'byte is', 'bytes are')} missing"


async def exchange(request: Request, line: Line, is_expected: Callable[[int], bool]) -> Answer:
    """Send it, and what redirects make of it. A redirect that is expected is not followed."""
    first = request.target
    for hop in range(MOST_REDIRECTS + 1):
        try:
            answer = await _send(request, line)
        except Refusal as error:
            raise Refusal(f"{first.shown} redirects, but {error}" if hop else str(error)) from error
        location = answer.headers.get("location")
        if answer.status not in REDIRECTS or location is None or is_expected(answer.status):
            return answer
        request = next_request(request, answer.status, location)
    raise Refusal(f"{first.shown} redirects more than {MOST_REDIRECTS} times, the last time to {request.target.shown}")


async def _send(request: Request, line: Line) -> Answer:
    target = request.target
    url = httpcore2.URL(scheme=target.scheme, host=target.host, port=target.port, target=target.resource)
    connection = httpcore2.AsyncHTTPConnection(url.origin, await line.aim(target), network_backend=line)
    sent = httpcore2.Request(request.method, url, headers=request.fields, content=request.body)
    line.allowance = MOST_AT_ONCE
    try:
        response = await connection.handle_async_request(sent)
    except httpcore2.LocalProtocolError as error:
        raise Refusal(f"{target.shown} cannot be called: {error}") from error
    except (OSError, httpcore2.RemoteProtocolError) as error:
        if line.is_at_end:
            said = "its headers broke off" if line.has_received else "Remote end closed connection without response"
        else:
            said = words(error, _LATE)
        raise Trouble(f"{target.shown} did not answer: {said}") from error
    headers: dict[str, str] = {}
    for name, value in response.headers:
        headers.setdefault(name.decode("latin-1").lower(), value.decode("latin-1"))
    return Answer(target, response.status, _phrase(response), headers, response, line)


def _phrase(response: httpcore2.Response) -> str:
    reason: bytes = response.extensions["reason_phrase"]
    said = "".join(letter for letter in reason.decode("latin-1") if letter.isprintable()).strip()
    said = said if len(said) <= 60 else said[:59] + "…"  # which tells the mask where a secret may be cut
    if said or response.status not in set(HTTPStatus):
        return said
    return HTTPStatus(response.status).phrase
