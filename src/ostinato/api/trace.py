"""The trace of a request, by W3C's headers: the runs that it asks for belong to it, whether or not anything here makes
spans. Where the host's own instrumentation has begun a span for the request, that goes first (trace_context.py)."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from ostinato.trace_context import carrying

__all__ = ["TraceMiddleware", "is_untraced"]

_WITH_SECRETS = ("/ping/", "/badge/", "/login/")
_PROBES = frozenset({"/livez/", "/healthz/", "/readyz/", "/metrics/"})


def is_untraced(scope: MutableMapping[str, Any]) -> bool:
    """Whether no span is made of a request: its address holds a secret (the key of a ping, the code of a login), or it
    is a probe, which comes every few seconds and tells nothing."""
    path = f"{scope['path']}/"
    return path.startswith(_WITH_SECRETS) or path in _PROBES


class TraceMiddleware:
    """Carries `traceparent` and `tracestate` to whatever the request does."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = scope.get("headers", ())
        parents = [value.decode("latin-1") for name, value in headers if name == b"traceparent"]
        if len(parents) != 1:  # none; or several, which W3C calls none
            await self._app(scope, receive, send)
            return
        states = ",".join(value.decode("latin-1") for name, value in headers if name == b"tracestate")
        with carrying({"traceparent": parents[0], "tracestate": states}):
            await self._app(scope, receive, send)
