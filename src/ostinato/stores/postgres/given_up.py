"""What was given up and goes on, in PostgreSQL: looked at by claims.py and schedules.py."""

from __future__ import annotations

from ostinato.stores.sql.given_up import ALLOWS, LIVING

__all__ = ["GIVEN_UP_OF", "MAY_START"]

# Once for a statement, and not for each row: there is hardly ever one.
MAY_START = f"""
(schedule_id IS NULL
 OR schedule_id <> ALL (ARRAY(SELECT s.id FROM {LIVING} JOIN schedules s ON s.name = g.schedule))
 OR strpos(policy, '{ALLOWS}') > 0)
"""
GIVEN_UP_OF = f"ARRAY(SELECT g.run_id FROM {LIVING} WHERE g.schedule = s.name ORDER BY g.run_id)"
