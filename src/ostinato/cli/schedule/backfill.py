"""`ostinato schedule backfill`: run the due times of a span that has passed."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from ostinato.cli.console import emit, emit_json, say
from ostinato.cli.open_database import opened
from ostinato.cli.options import NO_COMMON, Common, ScheduleName
from ostinato.cli.schedule.view import warn_of_no_engine
from ostinato.cli.times import full, read_time

__all__ = ["backfill"]


def backfill(
    name: ScheduleName,
    /,
    *,
    from_: Annotated[str, Parameter(name="--from")],
    until: str,
    all: Annotated[bool, Parameter(negative=())] = False,
    dry_run: Annotated[bool, Parameter(negative=())] = False,
    common: Common = NO_COMMON,
) -> None:
    """Run the due times of a period in the past, the oldest first, 1,000 at most. Prints the numbers of the runs.

    Due times that have a succeeded or active run are left out. Runs go one after the other, unless the schedule's
    overlap policy is allow.

    Parameters
    ----------
    from_
        From this time on: 2026-03-01T09:00Z, or 2026-03-01 in the zone of the settings.
    until
        Up to this time, which is not in the future.
    all
        Include due times that have a succeeded or active run.
    dry_run
        Only print the due times.
    """
    with opened(common) as database:
        name = database.schedule_name(name)
        start = read_time(from_, database.zone, field="from")
        end = read_time(until, database.zone, field="until")
        found = database.ask(database.services.schedules.backfill(name, start, end, all=all, dry_run=dry_run))
        if common.json:
            emit_json(found)
            return
        if dry_run:
            for due in found.due:
                emit(full(due, database.zone))
        for id in found.runs:
            emit(str(id))
        if found.runs:
            warn_of_no_engine(database)
        count = f"{len(found.due):,} due time{'s' if len(found.due) != 1 else ''} of {name!r}"
        left_out = f"; {found.left_out:,} left out, which ran or are active" if found.left_out else ""
        say(f"{count} {'would be queued' if dry_run else 'queued'}{left_out}")
