"""What the HTTP calls of a node share: names are looked up beside the loop, each address is judged, TLS is set up.

line.py asks for addresses just before it connects to one of them. Neighbours: addresses.py says which may be called.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Hashable
from functools import partial
from ipaddress import ip_address
from typing import Any, TypeVar

from ostinato.execution.executors.http.addresses import AllowedHosts
from ostinato.execution.executors.http.request import Refusal, Target, Trouble
from ostinato.execution.threads import WorkerThreads

__all__ = ["Network"]

MOST_ADDRESSES = 8
"""How many addresses of one host are tried."""

T = TypeVar("T")
Address = tuple[int, Any]
"""A family, and what a socket of it connects to."""


class Network:
    """Only a look-up takes a thread, and all who ask for the same host at the same time share one."""

    def __init__(self, allowed: AllowedHosts, threads: WorkerThreads) -> None:
        self._allowed = allowed
        self._threads = threads
        self._tls: ssl.SSLContext | None = None
        self._answers: dict[Hashable, asyncio.Future[Any]] = {}

    async def addresses(self, target: Target) -> list[Address]:
        """The addresses that may be called, at least one. Only these are: nobody asks for the name again."""
        found = await self._look_up(target.host, target.port)
        if isinstance(found, ValueError):
            raise Refusal(f"{target.shown} cannot be called: {target.host!r} is not a valid host") from found
        if isinstance(found, Exception):
            said = found.strerror if isinstance(found, OSError) else found
            raise Trouble(f"{target.shown} cannot be reached: {target.host} has no address ({said})") from found
        internet = [entry for entry in found if entry[0] in (socket.AF_INET, socket.AF_INET6)]
        refusals = [self._allowed.refusal(target.host, str(address[0])) for *_, address in internet]
        good = [(int(entry[0]), entry[4]) for entry, why in zip(internet, refusals, strict=True) if why is None]
        if not good:
            refusal = next((refusal for refusal in refusals if refusal is not None), "no address")
            raise Refusal(f"{target.shown} resolves to {refusal}")
        return good[:MOST_ADDRESSES]

    async def tls(self) -> ssl.SSLContext:
        """Made once, when it is needed: reading every authority takes a while."""
        if self._tls is None:
            made = await self._on_thread("tls", ssl.create_default_context)
            if isinstance(made, Exception):
                raise made
            self._tls = made
        return self._tls

    async def _look_up(self, host: str, port: int) -> list[tuple[Any, ...]] | Exception:
        look_up = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
        try:
            ip_address(host)
        except ValueError:
            return await self._on_thread((host, port), look_up)
        return _attempt(look_up)  # nobody has to be asked

    async def _on_thread(self, key: Hashable, function: Callable[[], T]) -> T | Exception:
        """What the function answers or raises. It cannot be stopped; who waits for it can."""
        answer = self._answers.get(key)
        if answer is None:
            answer = asyncio.get_running_loop().create_future()
            self._threads.submit(partial(_attempt, function), answer.set_result)
            self._answers[key] = answer
        try:
            found: T | Exception = await asyncio.shield(answer)
            return found
        finally:
            self._answers.pop(key, None)  # it may hang for ever: after a stop the next one asks anew


def _attempt(function: Callable[[], T]) -> T | Exception:
    try:
        return function()
    except Exception as error:
        return error
