"""What was given up and goes on, the same for every store: its row, and which runs may start beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ostinato.clock import from_micros
from ostinato.models.given_up import GivenUp

__all__ = ["ALLOWS", "GIVEN_UP_COLUMNS", "LIVING", "load_given_up"]

GIVEN_UP_COLUMNS = "g.run_id, g.token, g.schedule, g.name, g.node, g.at"
LIVING = "given_up g JOIN nodes n ON n.id = g.node AND n.lost_at IS NULL"
"""A process that is gone took its threads along."""
ALLOWS = '"overlap":"allow"'
"""What the policy of a run says that may start beside others. It is looked for as a text: no bad row is in the way."""


def load_given_up(row: Sequence[Any]) -> GivenUp:
    """From GIVEN_UP_COLUMNS."""
    run, token, schedule, name, node, at = row
    return GivenUp(run, token, schedule or None, name, node, from_micros(at))
