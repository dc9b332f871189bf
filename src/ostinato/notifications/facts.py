"""What a message tells besides what its delivery says: the run and its output, the incident, the next due time.

Read when the message is sent, so that it is true then. Called by sender.py.
"""

from __future__ import annotations

from collections.abc import Sequence

from ostinato.config import Settings
from ostinato.models.notification import Delivery
from ostinato.models.output import output_lines
from ostinato.models.run import Run
from ostinato.notifications.text import Facts, last_lines
from ostinato.stores.base import Store

__all__ = ["gather"]

_PARTS = 3
"""As many parts of an output as have its last lines."""


async def gather(store: Store, deliveries: Sequence[Delivery], settings: Settings) -> Facts:
    """What is known of one delivery; of many, nothing is told but what they say themselves."""
    nothing = Facts(zone=settings.tz, public_url=settings.public_url)
    if len(deliveries) != 1:
        return nothing
    (delivery,) = deliveries
    run = None if delivery.run is None else await store.runs.get_run(delivery.run)
    return Facts(
        run=run,
        incident=None if delivery.incident is None else await store.notifications.get_incident(delivery.incident),
        schedule=None if delivery.schedule is None else await store.schedules.get_schedule(delivery.schedule),
        lines=[] if run is None else await _output(store, run),
        zone=nothing.zone,
        public_url=nothing.public_url,
    )


async def _output(store: Store, run: Run) -> list[str]:
    parts = await store.runs.read_output(run.id)
    return last_lines([line.text for line in output_lines(parts[-_PARTS:]) if line.number is not None])
