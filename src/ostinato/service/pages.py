"""Pages of long lists: cursors that say where the next page begins, and only for the list that they came from."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Generic, TypeVar

import msgspec

from ostinato.errors import InvalidInput

__all__ = ["Page", "check_limit", "cursor_text", "read_cursor"]

T = TypeVar("T")
_GREATEST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """A part of a list, and the cursor of the next one; None if this was the last."""

    items: Sequence[T]
    next: str | None


def cursor_text(key: Sequence[int | str | None], wanted: Any) -> str:
    """A cursor behind this key, for the list of what is wanted."""
    return urlsafe_b64encode(msgspec.json.encode([_fingerprint(wanted), *key])).decode().rstrip("=")


def read_cursor(text: str, wanted: Any, *types: type | tuple[type, ...]) -> list[Any]:
    """The key of a cursor, whose parts have these types; InvalidInput if it is none, or of another list."""
    try:
        fingerprint, *key = msgspec.json.decode(urlsafe_b64decode(text + "=" * (-len(text) % 4)), type=list[Any])
        good = len(key) == len(types) and all(map(_fits, key, types))
    except (ValueError, RecursionError, msgspec.DecodeError):
        fingerprint, key, good = None, [], False
    if not good:
        raise InvalidInput(
            f"cursor {text[:80]!r} is not valid", field="cursor", hint="give `next` of the previous page"
        )
    if fingerprint != _fingerprint(wanted):
        raise InvalidInput(
            "the cursor belongs to another list",
            field="cursor",
            hint="give the same filters and order as for the previous page",
        )
    return key


def check_limit(limit: int, name: str = "limit") -> int:
    """How many are asked for; InvalidInput if that is none."""
    if limit < 1:
        raise InvalidInput(f"{name} cannot be {limit}", field=name, hint="give 1 or more")
    return limit


def _fits(part: Any, types: type | tuple[type, ...]) -> bool:
    if isinstance(part, bool) or not isinstance(part, types):
        return False
    return abs(part) <= _GREATEST if isinstance(part, int) else not isinstance(part, str) or "\0" not in part


def _fingerprint(wanted: Any) -> str:
    return blake2b(repr(wanted).encode("utf-8", "backslashreplace"), digest_size=6).hexdigest()
