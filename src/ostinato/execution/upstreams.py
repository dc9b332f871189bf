"""What commands are told of the runs that theirs came after; functions ask `run.upstream`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from ostinato.models.upstream import Upstream, last_to_end

__all__ = ["UPSTREAM_VARIABLES", "upstream_environment"]

UPSTREAM_VARIABLES = ("OSTINATO_UPSTREAM", "OSTINATO_UPSTREAMS")

_MOST = 96 * 1024
"""Linux takes no variable of 128 KiB. A longer one has no results: `ostinato run show` has them."""


def upstream_environment(upstreams: Sequence[Upstream]) -> Mapping[str, str]:
    """`OSTINATO_UPSTREAM`, the last of them to end, and `OSTINATO_UPSTREAMS`, all of them, as JSON; nothing if there
    are none."""
    last = last_to_end(upstreams)
    if last is None:
        return {}
    return dict(zip(UPSTREAM_VARIABLES, (_json([last])[1:-1], _json(upstreams)), strict=True))


def _json(upstreams: Sequence[Upstream]) -> str:
    whole = msgspec.json.encode(upstreams)
    if len(whole) <= _MOST:
        return whole.decode()
    brief = [{**msgspec.to_builtins(one), "result": None, "error": None, "cut": True} for one in upstreams]
    return msgspec.json.encode(brief).decode()
