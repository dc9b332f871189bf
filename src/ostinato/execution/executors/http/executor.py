"""HTTP work: a request on the loop, its body into the run's output, its status into an Outcome.

request.py says what is sent, network.py and line.py where to, exchange.py sends it, body.py reads what comes.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Callable, Mapping
from datetime import UTC, timedelta
from email.utils import parsedate_to_datetime
from functools import cache
from typing import TYPE_CHECKING, Self

import msgspec

from ostinato.clock import Micros, from_micros
from ostinato.config import Settings
from ostinato.execution.executors.base import LOOP_ENDED, STOPPED, Call, ExecutorHost
from ostinato.execution.executors.http.addresses import AllowedHosts
from ostinato.execution.executors.http.body import Body
from ostinato.execution.executors.http.network import Network
from ostinato.execution.executors.http.request import Refusal, Trouble, first_request
from ostinato.execution.outcome import Outcome, OutcomeKind, raised
from ostinato.execution.resources import is_exhausted, starved
from ostinato.execution.threads import WorkerThreads
from ostinato.models.states import Cause
from ostinato.models.work import Http

if TYPE_CHECKING:
    from ostinato.execution.executors.http.exchange import Answer
    from ostinato.execution.executors.http.line import Line

__all__ = ["HttpCalls", "retry_after"]

LONGEST_WAIT = timedelta(hours=24)
"""The most that a Retry-After puts the next try off."""
_MAY_BE_WELL_LATER = frozenset({408, 425, 429})


class HttpCalls:
    """A task of the loop for each call."""

    stop_seconds = 1.0
    kill_seconds = 0.0

    def __init__(self, settings: Settings, threads: WorkerThreads, now: Callable[[], Micros]) -> None:
        self._network = Network(AllowedHosts(settings.http_allow), threads)
        self._tuning = settings.tuning
        self._now = now

    @classmethod
    def made(cls, host: ExecutorHost) -> Self:
        """For a node."""
        return cls(host.settings, host.threads, host.now)

    def start(self, call: Call) -> None:
        # Here, because most who start a node call nobody, and the library takes a while.
        from ostinato.execution.executors.http.line import Line

        line = Line(self._network, self._tuning)
        call.handle = asyncio.get_running_loop().create_task(self._carry_out(call, line))
        call.handle.add_done_callback(lambda ended: call.done(_outcome(ended, call, was_open=line.was_open)))

    def stop(self, call: Call) -> None:
        call.context.request_cancel()
        call.handle.cancel()

    kill = stop

    async def _carry_out(self, call: Call, line: Line) -> Outcome:
        from ostinato.execution.executors.http.exchange import exchange

        work, process_environment = call.work, call.process_environment
        assert isinstance(work, Http)
        assert process_environment is not None
        try:
            # The instant as well: another database may have a run of the same number, for the same host.
            key = f"{call.context.key}-{call.context.claimed.due_at}"
            request = first_request(work, process_environment.references, key, _version(), call.context.trace)
            answer = await exchange(request, line, work.expects)
            body = Body(answer.headers, call.context.write, call.context.mask)
            async with contextlib.aclosing(answer.pieces()) as pieces:
                async for piece in pieces:
                    for _ in body.adding(piece):
                        await asyncio.sleep(0)  # what comes fast enough would never let go of the loop
            body.end()
            return _judged(work, answer, body, self._now)
        except asyncio.CancelledError:
            line.close(reset=True)
            raise
        finally:
            line.close()


def _outcome(ended: asyncio.Task[Outcome], call: Call, *, was_open: bool) -> Outcome:
    """Whatever happened, an outcome."""
    if ended.cancelled():
        return STOPPED if call.context.cancelled else LOOP_ENDED
    error = ended.exception()
    if error is None:
        return ended.result()
    if isinstance(error, Refusal):
        return Outcome(OutcomeKind.ABORTED, str(error), cause=Cause.REQUEST_REFUSED)
    if is_exhausted(error) and not was_open:
        return starved(str(error))
    if isinstance(error, Trouble):
        return Outcome(OutcomeKind.FAILED, str(error), cause=Cause.NO_ANSWER)
    return raised(error)


def _judged(work: Http, answer: Answer, body: Body, now: Callable[[], Micros]) -> Outcome:
    """What an answer is worth."""
    said = {
        "status": answer.status,
        "url": answer.target.url,
        "content_type": body.type,
        "bytes": body.size,
        "json": body.json,
    }
    result = msgspec.json.encode(said).decode()
    if work.expects(answer.status):
        return Outcome(OutcomeKind.RETURNED, result=result)
    wanted = ", ".join(str(status) for status in work.expect)
    reason = f"HTTP {answer.status} {answer.phrase}".rstrip()
    reason = f"{reason} from {answer.target.shown} (expected {wanted})" + (f": {body.gist}" if body.gist else "")
    if answer.status in _MAY_BE_WELL_LATER or answer.status >= 500:
        delay = retry_after(answer.headers, now)
        return Outcome(OutcomeKind.FAILED, reason, result=result, cause=Cause.HTTP_STATUS, delay=delay)
    return Outcome(OutcomeKind.ABORTED, reason, result=result, cause=Cause.HTTP_STATUS)


def retry_after(headers: Mapping[str, str], now: Callable[[], Micros]) -> timedelta | None:
    """How long the other side asks to wait: seconds, or a date, which counts from the date of the answer."""
    said = headers.get("retry-after", "").strip()
    if re.fullmatch(r"\d{1,9}", said):
        return min(timedelta(seconds=int(said)), LONGEST_WAIT)
    try:
        until = parsedate_to_datetime(said)
    except (ValueError, TypeError, OverflowError):
        return None
    try:
        since = parsedate_to_datetime(headers.get("date", ""))
    except (ValueError, TypeError, OverflowError):
        since = from_micros(now())
    wait = until.replace(tzinfo=until.tzinfo or UTC) - since.replace(tzinfo=since.tzinfo or UTC)
    return max(timedelta(), min(wait, LONGEST_WAIT))


@cache
def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("ostinato")
    except PackageNotFoundError:  # not installed, but on the path
        return "0"
