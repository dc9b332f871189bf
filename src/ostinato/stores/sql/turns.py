"""Which runs have their turn and which wait for it, as conditions. Each is found by an index of its own.

Who gives the turns is each store's turns.py.
"""

from __future__ import annotations

__all__ = ["IN_TURN", "PARKED", "WAITING"]

PARKED = "SELECT run_id FROM run_upstreams WHERE state IS NULL"
"""Runs that wait for the ends of others, and for no turn in a session yet; some of them may have ended themselves."""

WAITING = "session = :key AND state = 'queued' AND waiting = TRUE"
IN_TURN = "session = :key AND waiting = FALSE AND state IN ('queued', 'running')"
