"""/metrics: who may read them. `service/metrics.py` has the text.

It needs a viewer's token, or a client on this machine where only such can come. docs/reference/metrics.md says more.
"""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from ostinato.api.access import Container, authenticator_of
from ostinato.api.prefix import is_mounted
from ostinato.api.security import is_loopback, split_host
from ostinato.config import Settings
from ostinato.service.metrics import METRICS_CONTENT_TYPE

__all__ = ["router"]

router = APIRouter()

_FORWARDED = ("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-real-ip")


@router.get("/metrics", include_in_schema=False)
async def metrics(request: Request, container: Container) -> Response:
    """Counters and gauges of the whole database."""
    if not _is_on_this_machine(request, container.settings):
        await authenticator_of(request).identify(request)
    text = await container.metrics(request.app.state.connections)
    return Response(text, 200, {"Cache-Control": "no-store"}, media_type=METRICS_CONTENT_TYPE)


def _is_on_this_machine(request: Request, settings: Settings) -> bool:
    """Whether it comes from here, and not through a proxy that stands here and may look the same.

    A proxy need not say that it is one, nor keep the name that it was called by. So nobody is taken for local where
    the server listens to others too, or answers to other names, as behind a proxy it must; nor in another app, which
    may listen anywhere.
    """
    if is_mounted(request.scope) or settings.hosts or not is_loopback(settings.host):
        return False
    client, (host, _) = request.client, split_host(request.headers.get("host", ""))
    # Left as it comes, nginx names nobody and calls us by our own address, but speaks as one did before 1.1.
    is_passed_on = any(name in request.headers for name in _FORWARDED) or request.scope["http_version"] == "1.0"
    return client is not None and is_loopback(client.host) and is_loopback(host or "") and not is_passed_on
