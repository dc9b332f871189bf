"""What the end of runs means for the schedules that follow theirs, in SQL: for each store's parts.py, which notes it.

Neighbour: upstreams.py, which fires the followers.
"""

from __future__ import annotations

from collections.abc import Sequence

from ostinato.models.upstream import EndedRun
from ostinato.stores.sql.connection import Values

__all__ = ["DUE_BY_ITSELF", "FOLLOWERS", "FOLLOWERS_OF", "NOTE", "WAKE", "note_values"]

FOLLOWERS = """
SELECT u.schedule_id FROM schedule_upstreams u JOIN schedules n ON n.name = u.upstream
"""
# Where nobody follows, an index is found empty. Of those that are off nothing is noted.
NOTE = """
INSERT INTO upstream_ends (schedule_id, upstream_run, upstream, state, ended_at)
SELECT u.schedule_id, f.run_id, n.name, f.state, f.ended_at
FROM unnest(:runs::bigint[], :schedules::bigint[], :states::text[], :ended::bigint[])
     f (run_id, upstream_id, state, ended_at)
JOIN schedules n ON n.id = f.upstream_id
JOIN schedule_upstreams u ON u.upstream = n.name
JOIN schedules s ON s.id = u.schedule_id
WHERE s.enabled AND s.broken IS NULL AND NOT s.orphaned
ON CONFLICT DO NOTHING
"""
WAKE = """
UPDATE schedules AS s SET next_at = e.at
FROM (SELECT schedule_id, min(ended_at) AS at FROM upstream_ends
      WHERE run_id IS NULL AND NOT held AND schedule_id = ANY (:ids::bigint[]) GROUP BY schedule_id) e
WHERE s.id = e.schedule_id AND s.enabled AND s.broken IS NULL AND NOT s.orphaned
  AND (s.next_at IS NULL OR s.next_at > e.at)
"""
DUE_BY_ITSELF = "AND NOT s.follows"
"""What else holds for schedules `s` whose `next_at` is told as a due time: a follower has none of its own."""
FOLLOWERS_OF = f"{FOLLOWERS} WHERE n.id = ANY (:schedules::bigint[])"


def note_values(ended: Sequence[EndedRun]) -> Values:
    """The values of NOTE."""
    return {
        "runs": [one.run for one in ended],
        "schedules": [one.schedule for one in ended],
        "states": [one.state for one in ended],
        "ended": [one.at for one in ended],
    }
