"""What a command that stays tells systemd: that it is ready, that it drains, and, for the watchdog, that it is well.

`up.py` and `web.py` take the variables before the user's code is loaded, `serving.py` says when what holds. The
protocol is that of sd_notify(3): datagrams to a socket. Without `NOTIFY_SOCKET` nothing is told.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import socket
import time
from collections.abc import AsyncIterator, Callable, Mapping, MutableMapping

from ostinato.config import SYSTEMD_VARIABLES
from ostinato.logs import get_logger

__all__ = ["ServiceManager"]

log = get_logger("ostinato")

_SEND_SECONDS = 1.0
"""How long a manager that reads nothing may hold us up."""
_LOOK_SECONDS = 1.0
"""How often it is looked whether what is not well is well again: half of the watchdog's time may be too late."""
_AFTER_GRACE_SECONDS = 30.0
"""What a drain takes beyond the grace, and a little more: work that does not stop, the last write, the connections."""
_START_SECONDS = 3600.0
"""What the watchdog waits for a process that starts anew: it loads the app, and may have to migrate."""
_NOT_OURS = (errno.EBADF, errno.ENOTSOCK)

WhyNotWell = Callable[[], str | None]
"""Why a restart would help; None while all is well. Asked on the event loop, so that a loop that hangs asks nobody."""


class ServiceManager:
    """The manager that started this process, or nobody."""

    def __init__(self, address: str | None, watchdog_seconds: float | None) -> None:
        self._address = address
        self._watchdog_seconds = watchdog_seconds
        self._why_not_well: WhyNotWell = lambda: None
        self._ready = asyncio.Event()
        self._socket = None if address is None else _new_socket()
        """Open from the start: work may take all descriptors, and the watchdog is to be told all the same."""

    @classmethod
    def take(cls, environment: MutableMapping[str, str] = os.environ) -> ServiceManager:
        """The one that the environment names. Its variables are removed: no process that is started here has them."""
        taken = {name: environment.pop(name) for name in SYSTEMD_VARIABLES if name in environment}
        address = taken.get("NOTIFY_SOCKET") or None
        if address is not None and not address.startswith(("/", "@")):
            log.warning("NOTIFY_SOCKET is %r, neither a path nor an abstract socket: nobody is told", address)
            address = None
        return cls(address, None if address is None else _watchdog_seconds(taken))

    def ready(self, status: str, why_not_well: WhyNotWell = lambda: None) -> None:
        """It serves; from now on the watchdog is told for as long as there is no reason against it."""
        self._why_not_well = why_not_well
        # After a restart in place the time to start is still in force: `starting_anew`.
        self._send("READY=1", f"STATUS={status}", *_watchdog_line(self._watchdog_seconds))
        self._ready.set()

    def stopping(self, grace_seconds: float) -> None:
        """It drains. However short the unit's TimeoutStopSec is, work has its grace."""
        self._why_not_well = lambda: None  # services end on purpose from here on
        micros = round((grace_seconds + _AFTER_GRACE_SECONDS) * 1_000_000)
        self._send("STOPPING=1", "STATUS=draining", f"EXTEND_TIMEOUT_USEC={micros}")

    def reloading(self) -> None:
        """It drains and starts anew; `ready` follows."""
        self._why_not_well = lambda: None
        self._send("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1_000}", "STATUS=draining to start anew")

    def starting_anew(self) -> None:
        """It is drained, and the new process tells the watchdog nothing until it is ready."""
        self._send("STATUS=starting anew", *_watchdog_line(self._watchdog_seconds and _START_SECONDS))

    def close(self) -> None:
        """Tell nothing more."""
        self._address = None
        if self._socket is not None:
            self._socket.close()

    @contextlib.asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        """Within the body the watchdog is told that this process is well, while it is, from `ready` on."""
        if self._watchdog_seconds is None:
            yield
            return
        telling = asyncio.create_task(self._tell_watchdog(self._watchdog_seconds / 2), name="ostinato-systemd-watchdog")
        try:
            yield
        finally:
            telling.cancel()
            await asyncio.gather(telling, return_exceptions=True)

    async def _tell_watchdog(self, pause: float) -> None:
        await self._ready.wait()
        told: str | None = None
        while True:
            if (reason := self._reason()) is None:
                self._send("WATCHDOG=1")
            elif told is None:
                log.error("systemd will restart this process soon, unless this ends: %s", reason)
                self._send(f"STATUS=not well: {reason}")
            if reason is None and told is not None:
                self._send("STATUS=well again")
            told = reason
            await asyncio.sleep(pause if reason is None else min(pause, _LOOK_SECONDS))

    def _reason(self) -> str | None:
        try:
            return self._why_not_well()
        except Exception as error:
            log.exception("it cannot be told whether this process is well")
            return f"it cannot be told: {type(error).__name__}: {error}"

    def _send(self, *lines: str) -> None:
        if self._address is None:
            return
        address = f"\0{self._address[1:]}" if self._address.startswith("@") else self._address
        message = "\n".join(line.replace("\n", " ") for line in lines).encode(errors="replace")
        problem = _sent(self._socket, message, address)
        if problem is not None and problem.errno in _NOT_OURS:  # work closed it; its number may be another's
            if self._socket is not None:
                self._socket.detach()
            self._socket = _new_socket()
            problem = _sent(self._socket, message, address)
        if problem is not None:  # whoever started this may be gone; the work goes on
            log.warning("the service manager at %s could not be told %s: %s", self._address, lines[0], problem)


def _watchdog_line(seconds: float | None) -> tuple[str, ...]:
    """What sets the watchdog's time, from now on; nothing where there is none, since it would begin by that."""
    return () if seconds is None else (f"WATCHDOG_USEC={round(seconds * 1_000_000)}",)


def _new_socket() -> socket.socket | None:
    try:
        made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    except OSError as error:
        log.warning("no socket for the service manager: %s", error)
        return None
    made.settimeout(_SEND_SECONDS)
    return made


def _sent(sender: socket.socket | None, message: bytes, address: str) -> OSError | None:
    """What kept it from being sent, if anything did."""
    try:
        if sender is None:
            return OSError(errno.EBADF, "there is no socket")
        sender.sendto(message, address)
    except OSError as error:
        return error
    return None


def _watchdog_seconds(taken: Mapping[str, str]) -> float | None:
    """How often it wants to hear at least; None if there is no watchdog, or it is for another process."""
    given = taken.get("WATCHDOG_USEC", "")
    if taken.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return None
    if given and not (given.isascii() and given.isdigit() and int(given) > 0):
        log.warning("WATCHDOG_USEC is %r, not a number of microseconds: the watchdog is not told", given)
        return None
    return int(given) / 1_000_000 if given else None
