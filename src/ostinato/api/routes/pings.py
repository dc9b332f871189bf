"""/ping/{key}: where machines check in, and /badge/{key}.svg. Nobody logs in: the key is the secret.

What is asked for with a key that nobody has is answered as any address that does not exist.
"""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from ostinato.api.access import Served, address_of
from ostinato.api.badge import badge_svg
from ostinato.api.container import ApiContainer
from ostinato.api.login_throttle import LoginThrottle
from ostinato.api.ping_throttle import PingThrottle
from ostinato.clock import Micros
from ostinato.errors import NotFound
from ostinato.models.check_in import Ping, PingSignal

__all__ = ["PingLimits", "router"]

KEPT_OUTPUT = 65_536
"""So many bytes of a body are kept: the last ones."""
BADGE_AGE = 60
"""Seconds for which a badge may be shown again without asking."""

router = APIRouter()
_METHODS = ["GET", "HEAD", "POST"]
_SIGNALS = {signal.value: Ping(signal) for signal in PingSignal}


class PingLimits:
    """How often somebody may ask: with a key, and with what is none."""

    def __init__(self) -> None:
        self._pings = PingThrottle()
        self._guesses = LoginThrottle()

    def ask(self, request: Request, key: str) -> None:
        """Before the key is looked up: TooManyAttempts for whoever guessed before and has to wait, unless the key is
        known to be one. Others behind the same address may have it."""
        address = address_of(request)
        if not self._pings.knows(key) and self._guesses.has_failed(address):
            self._guesses.check(address, _now(request))

    def count(self, request: Request, key: str, *, is_known: bool) -> None:
        """Once it was looked up: TooManyAttempts for what comes too often; NotFound for what is no key."""
        if is_known:
            self._pings.count(key, _now(request))
            return
        self._pings.forget(key)
        address = address_of(request)
        self._guesses.check(address, _now(request))
        self._guesses.failed(address, _now(request))
        raise _nothing()


@router.api_route("/ping/{key}", methods=_METHODS, include_in_schema=False)
async def ping(key: str, request: Request, services: Served) -> Response:
    """It succeeded."""
    return await _check_in(key, _SIGNALS[PingSignal.SUCCESS], request, services)


@router.api_route("/ping/{key}/{said:path}", methods=_METHODS, include_in_schema=False)
async def ping_saying(key: str, said: str, request: Request, services: Served) -> Response:
    """It says `start`, `success` or `fail`, or its exit status."""
    known = _SIGNALS.get(said)
    if known is None:
        if not (said.isascii() and said.isdecimal() and len(said) <= 3 and int(said) <= 255):
            raise _nothing()
        known = Ping(PingSignal.SUCCESS if int(said) == 0 else PingSignal.FAIL, int(said))
    return await _check_in(key, known, request, services)


@router.get("/badge/{key}.svg", include_in_schema=False)
async def badge(key: str, request: Request, services: Served) -> Response:
    """How a schedule is, as a picture."""
    limits = _limits_of(request)
    limits.ask(request, key)
    found = await services.check_ins.badge(key)
    limits.count(request, key, is_known=found is not None)
    assert found is not None
    headers = {"Cache-Control": f"public, max-age={BADGE_AGE}"}
    return Response(badge_svg(found), headers=headers, media_type="image/svg+xml")


async def _check_in(key: str, ping: Ping, request: Request, services: Served) -> Response:
    limits = _limits_of(request)
    limits.ask(request, key)
    # Before its body is read: a stranger has nothing to say.
    limits.count(request, key, is_known=await services.check_ins.knows(key))
    if await services.check_ins.check_in(key, await _with_body(ping, request)) is None:
        raise _nothing()
    return PlainTextResponse("OK\n", headers={"Cache-Control": "no-store"})


async def _with_body(ping: Ping, request: Request) -> Ping:
    """The end of what was sent, from the beginning of a line."""
    kept, cut, cut_lines = b"", 0, 0
    async for chunk in request.stream():
        kept += chunk
        if len(kept) > KEPT_OUTPUT:
            over = kept.find(b"\n", len(kept) - KEPT_OUTPUT) + 1 or len(kept) - KEPT_OUTPUT
            cut, cut_lines = cut + over, cut_lines + kept.count(b"\n", 0, over)
            kept = kept[over:]
    return Ping(ping.signal, ping.status, kept, cut, cut_lines)


def _limits_of(request: Request) -> PingLimits:
    limits = request.app.state.ping_limits
    assert isinstance(limits, PingLimits)
    return limits


def _now(request: Request) -> Micros:
    container: ApiContainer = request.app.state.container
    return container.clock.steady()


def _nothing() -> NotFound:
    return NotFound("there is nothing at this address")
