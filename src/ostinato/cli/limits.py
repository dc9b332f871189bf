"""How many connections the server may hold, and how many descriptors this process may: the first from the second.

Connections get a quarter of the descriptors: the database, and what is just being answered, need some too.
`connections.py` keeps to these limits.
"""

from __future__ import annotations

import contextlib
import resource
from dataclasses import dataclass

__all__ = ["Limits", "limits_here", "raise_descriptor_limit"]

ENOUGH = 8_192
"""Not more: every command that is started inherits it, and some look at each descriptor up to it."""
_SHARE = 4
_MOST, _FEWEST = 1_000, 8
_MOST_PER_ADDRESS = 200


@dataclass(frozen=True, slots=True)
class Limits:
    """Caps on connections, and deadlines in seconds."""

    connections: int
    per_address: int
    """Not for a trusted proxy, through which many come."""
    websockets: int
    head_seconds: float = 10.0
    """To connect (with TLS) and to send the head of a request."""
    body_seconds: float = 30.0
    write_seconds: float = 30.0
    """For a client to read on, while an answer waits for it."""
    keep_alive_seconds: int = 5
    """Between two requests."""


def limits_here() -> Limits:
    """What the descriptors of this process allow."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    descriptors = ENOUGH if soft == resource.RLIM_INFINITY else soft
    most = max(_FEWEST, min(_MOST, descriptors // _SHARE))
    return Limits(most, min(_MOST_PER_ADDRESS, most // 2), most // 2)


def raise_descriptor_limit() -> None:
    """Take as many descriptors as the system gives, up to what is enough."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = ENOUGH if hard == resource.RLIM_INFINITY else min(hard, ENOUGH)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):  # some systems give less than they say
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
