"""Where this server is mounted in another app, and what a request asks for below that place.

Frameworks differ: Starlette names the place in `root_path` and leaves the path whole, others cut the path, and some of
them (Litestar) name nothing. What was sent, `raw_path`, decides. Behind this, paths begin at the mount.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, unquote

from starlette.requests import HTTPConnection
from starlette.types import Scope

__all__ = ["PREFIX", "below_prefix", "is_mounted", "prefix_of"]

PREFIX = "ostinato.prefix"
"""In the scope of what came through a mount: its place as it stands in URLs, `/jobs`, or nothing at the root."""


def below_prefix(scope: Scope) -> dict[str, Any]:
    """The scope as it would be if this server were not mounted, with its place beside it."""
    prefix, path = _split(scope)
    # What the host's router left there is about its own routes.
    below: dict[str, Any] = {**scope, "path": path, "root_path": "", "path_params": {}}
    below[PREFIX] = quote("/" + prefix.strip("/")) if prefix.strip("/") else ""
    if isinstance(raw := scope.get("raw_path"), bytes):
        below["raw_path"] = _cut(raw, path)
    return below


def is_mounted(scope: Scope) -> bool:
    """Whether another app has handed this request on."""
    return PREFIX in scope


def prefix_of(connection: HTTPConnection) -> str:
    """Where this server is mounted, as it stands in URLs; nothing if it is at the root."""
    found: str = connection.scope.get(PREFIX, "")
    return found


def _split(scope: Scope) -> tuple[str, str]:
    """Where it is mounted, and the path below that."""
    path, root = str(scope["path"]), str(scope.get("root_path") or "").rstrip("/")
    raw = scope.get("raw_path")
    sent = unquote(raw.partition(b"?")[0].decode("latin-1")) if isinstance(raw, bytes) else path
    if (path == root or path.startswith(f"{root}/")) and root and sent != root + path:
        return root, path[len(root) :] or "/"
    rest = path.rstrip("/")  # Litestar adds a slash that was not sent
    if len(sent.rstrip("/")) > len(rest) and sent.rstrip("/").endswith(rest):
        prefix = sent.rstrip("/")[: len(sent.rstrip("/")) - len(rest)]
        return prefix, sent[len(prefix) :] or "/"
    for start in range(len(root)):  # a proxy has cut its own part of the root off (FastAPI's root_path, Hypercorn)
        if root[start] == "/" and (path == root[start:] or path.startswith(f"{root[start:]}/")) and sent == path:
            return root, path[len(root) - start :] or "/"
    return root, path or "/"


def _cut(raw: bytes, path: str) -> bytes:
    """The end of what was sent that stands for this path. A slash in a name is sent as %2F: it does not count."""
    sent = raw.partition(b"?")[0]
    for start in range(len(sent)):
        if sent[start : start + 1] == b"/" and unquote(sent[start:].decode("latin-1")) == path:
            return sent[start:]
    return quote(path).encode()
