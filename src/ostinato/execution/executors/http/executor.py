"""HTTP work: a request on a worker thread, its body into the run's output, its status into an Outcome.

request.py says what is sent, line.py where to, exchange.py sends it, body.py reads what comes.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import ssl
import threading
from collections.abc import Callable
from datetime import UTC, timedelta
from email.message import Message
from email.utils import parsedate_to_datetime
from functools import cache

import msgspec

from ostinato.clock import Micros, from_micros
from ostinato.config import Settings
from ostinato.execution.executors.base import STOPPED, Call
from ostinato.execution.executors.http.addresses import AllowedHosts
from ostinato.execution.executors.http.body import Body
from ostinato.execution.executors.http.exchange import Answer, exchange
from ostinato.execution.executors.http.line import Line, Stopped
from ostinato.execution.executors.http.request import Refusal, Trouble, first_request
from ostinato.execution.outcome import Outcome, OutcomeKind, raised
from ostinato.execution.resources import is_exhausted, starved
from ostinato.execution.threads import WorkerThreads
from ostinato.models.states import Cause
from ostinato.models.work import Http

__all__ = ["HttpCalls", "retry_after"]

GIVE_UP_SECONDS = 0.5
"""How long a thread may take to return when it was stopped: a look-up of a name cannot be ended."""
LONGEST_WAIT = timedelta(hours=24)
"""The most that a Retry-After puts the next try off."""
_MAY_BE_WELL_LATER = frozenset({408, 425, 429})


class HttpCalls:
    """A worker thread for each call."""

    def __init__(self, settings: Settings, threads: WorkerThreads, now: Callable[[], Micros]) -> None:
        self._allowed = AllowedHosts(settings.http_allow)
        self._tuning = settings.tuning
        self._threads = threads
        self._now = now
        self._tls: ssl.SSLContext | None = None
        self._lock = threading.Lock()

    @property
    def stop_seconds(self) -> float:
        return 2 * GIVE_UP_SECONDS

    kill_seconds = 0.0

    def start(self, call: Call) -> None:
        line = Line(self._allowed, self._make_tls, self._tuning)
        request = call.handle = _Request(call, line)
        self._threads.submit(lambda: self._carry_out(call, line), request.end)

    def stop(self, call: Call) -> None:
        call.context.request_cancel()
        request: _Request = call.handle
        request.stop()

    kill = stop

    def _make_tls(self) -> ssl.SSLContext:
        """Made once, when it is needed: reading every authority takes a while."""
        with self._lock:
            if self._tls is None:
                self._tls = ssl.create_default_context()
                self._tls.set_alpn_protocols(["http/1.1"])
            return self._tls

    def _carry_out(self, call: Call, line: Line) -> Outcome:
        """On its thread: whatever happens, an outcome."""
        work, surroundings = call.work, call.surroundings
        try:
            assert isinstance(work, Http)
            assert surroundings is not None
            with contextlib.closing(line):
                # The instant as well: another database may have a run of the same number, for the same host.
                key = f"{call.context.key}-{call.context.claimed.due_at}"
                request = first_request(work, surroundings.headers, key, _version())
                answer = exchange(request, line, work.expects)
                body = Body(answer.headers, call.context.write, call.context.mask)
                for piece in answer.pieces():
                    body.add(piece)
                body.end()
            return _judged(work, answer, body, self._now)
        except BaseException as error:  # a thread that dies would leave its run under way for ever
            if line.is_stopped or isinstance(error, Stopped):
                return STOPPED
            if isinstance(error, Refusal):
                return Outcome(OutcomeKind.ABORTED, str(error), cause=Cause.REQUEST_REFUSED)
            if is_exhausted(error) and not line.was_open:
                return starved(str(error))
            if isinstance(error, Trouble):
                return Outcome(OutcomeKind.FAILED, str(error), cause=Cause.NO_ANSWER)
            return raised(error)


class _Request:
    """A call under way."""

    def __init__(self, call: Call, line: Line) -> None:
        self._call = call
        self._line = line
        self._has_ended = False

    def end(self, outcome: Outcome) -> None:
        if not self._has_ended:
            self._has_ended = True
            self._call.done(outcome)

    def stop(self) -> None:
        self._line.stop()
        # The thread of a look-up that hangs ends by itself, and does nothing more.
        asyncio.get_running_loop().call_later(GIVE_UP_SECONDS, self.end, STOPPED)


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


def retry_after(headers: Message, now: Callable[[], Micros]) -> timedelta | None:
    """How long the other side asks to wait: seconds, or a date, which counts from the date of the answer."""
    said = headers.get("Retry-After", "").strip()
    if re.fullmatch(r"\d{1,9}", said):
        return min(timedelta(seconds=int(said)), LONGEST_WAIT)
    try:
        until = parsedate_to_datetime(said)
    except (ValueError, TypeError, OverflowError):
        return None
    try:
        since = parsedate_to_datetime(headers.get("Date", ""))
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
