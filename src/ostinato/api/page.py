"""Serves the built page: its files, and index.html for every other address that a browser may ask for.

Files that carry a hash in their name never change. Each file is read and compressed once, and again when it changed;
index.html is made for the place where the server is mounted.
"""

from __future__ import annotations

import gzip
import hashlib
import mimetypes
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path

import anyio.to_thread
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import Receive, Scope, Send

from ostinato.api.host_login import host_login_of
from ostinato.api.prefix import prefix_of

__all__ = ["PAGE_FOLDER", "Page"]

PAGE_FOLDER = Path(__file__).parent / "page"

_NOT_BUILT = """The page is not built. In a checkout of Ostinato, run:

    make page

The API is at /api; its description at /api/openapi.json.
"""
_LOGIN_HERE, _LOGIN_AT_HOST = b'name="ostinato-login" content="here"', b'name="ostinato-login" content="host"'
_NOT_OURS = ("api", "livez", "healthz", "readyz", "metrics")
_FOREVER = "public, max-age=31536000, immutable"
_WORTHWHILE = 1_000
_COMPRESSIBLE = ("text/", "application/json", "application/manifest+json", "image/svg+xml")


@dataclass(frozen=True, slots=True)
class _File:
    """A file as it is sent."""

    changed: int
    kind: str
    body: bytes
    small: bytes | None
    tag: str
    never_changes: bool
    """Its name carries a hash."""
    is_index: bool


class Page:
    """The page, for whatever no route knows."""

    def __init__(self, folder: Path = PAGE_FOLDER) -> None:
        self._folder = folder.resolve()
        self._files: dict[Path, _File] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008, "reason": "there is no stream at this address"})
            return
        request = Request(scope)
        path = str(scope["path"]).lstrip("/")
        if path.split("/")[0] in _NOT_OURS:
            raise HTTPException(404)
        if request.method not in ("GET", "HEAD"):
            raise HTTPException(405, headers={"Allow": "GET, HEAD"})
        answer = await self._answer(path, request)
        await answer(scope, receive, send)

    async def _answer(self, path: str, request: Request) -> Response:
        found = await anyio.to_thread.run_sync(self._read, path)
        if found is None and Path(path).suffix and path.startswith("assets/"):
            raise HTTPException(404)  # a file of another build: index.html in its place would be no script
        found = found or await anyio.to_thread.run_sync(self._read, "index.html")
        if found is None:
            return PlainTextResponse(_NOT_BUILT, 503)
        if found.is_index:
            login = host_login_of(request.scope)
            if login is not None and await login.identity() is None:
                return login.refusal()
            found = _placed(found, prefix_of(request), has_host_login=login is not None)
        cached = _FOREVER if found.never_changes else "no-cache"
        headers = {"Cache-Control": cached, "ETag": found.tag, "Vary": "Accept-Encoding"}
        if request.headers.get("if-none-match") == found.tag:
            return Response(status_code=304, headers=headers)
        body = found.body
        if found.small is not None and "gzip" in request.headers.get("accept-encoding", ""):
            body, headers["Content-Encoding"] = found.small, "gzip"
        return Response(body, headers=headers, media_type=found.kind)

    def _read(self, path: str) -> _File | None:
        """The file at this path, if it is one of the page."""
        try:
            place = (self._folder / path).resolve()
            if not place.is_relative_to(self._folder) or not place.is_file():
                return None
            changed = place.stat().st_mtime_ns
            known = self._files.get(place)
            if known is None or known.changed != changed:
                self._files[place] = known = _loaded(
                    place,
                    changed,
                    never_changes=place.is_relative_to(self._folder / "assets"),
                    is_index=place == self._folder / "index.html",
                )
            return known
        except (OSError, ValueError):  # a name that no file can have
            return None


def _loaded(place: Path, changed: int, *, never_changes: bool, is_index: bool) -> _File:
    body = place.read_bytes()
    kind = mimetypes.guess_type(place.name)[0] or "application/octet-stream"
    return _File(changed, kind, body, _compressed(body, kind), _tag(body), never_changes, is_index)


def _placed(index: _File, prefix: str, *, has_host_login: bool) -> _File:
    """The first file of the page for the place where it is served: the build names its files relative to that."""
    body = index.body.replace(b'="./', f'="{escape(prefix)}/'.encode())
    if has_host_login:
        body = body.replace(_LOGIN_HERE, _LOGIN_AT_HOST)
    return replace(index, body=body, small=_compressed(body, index.kind), tag=_tag(body))


def _compressed(body: bytes, kind: str) -> bytes | None:
    return gzip.compress(body, 9) if len(body) > _WORTHWHILE and kind.startswith(_COMPRESSIBLE) else None


def _tag(body: bytes) -> str:
    return f'"{hashlib.sha256(body).hexdigest()[:32]}"'
