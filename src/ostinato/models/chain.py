"""Chains: runs that wait for the ends of others, as they are put into the ledger and as those ends decide over them.

stores/sql/chains.py writes both. Neighbour: upstream.py, for schedules that run after others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from ostinato.clock import Micros, micros_of
from ostinato.errors import NotLoadable
from ostinato.models.ids import RunId
from ostinato.models.policy import DEFAULT, load_policy
from ostinato.models.run import NewRun
from ostinato.models.session import Message, queued_message
from ostinato.models.states import RunState, Trigger
from ostinato.models.upstream import FOLLOWED, ended_text, left_out
from ostinato.timing import On

__all__ = ["ChainStep", "Released", "RunEnd", "as_steps", "released", "why_left_out"]


class ChainStep(NamedTuple):
    """A run of a chain, and the places of those that it runs after: they come before it."""

    run: NewRun
    after: Sequence[int] = ()


class RunEnd(NamedTuple):
    """How a run ended for which others may wait."""

    run: RunId
    state: RunState | None
    """None if it was removed before anybody noted its end."""
    at: Micros


class Released(NamedTuple):
    """What becomes of the row of a step when it is its turn."""

    id: RunId
    released_at: Micros
    """When the last of its upstreams ended."""
    due_at: Micros
    expires_at: Micros | None
    session: str | None
    asked_at: Micros
    """When its chain was enqueued."""


def as_steps(runs: Sequence[NewRun], after: Sequence[Sequence[int]], now: Micros) -> list[ChainStep]:
    """The rows of a chain: what runs after nothing as if it were enqueued alone, and the others parked.

    A parked run is queued, and no claim, lane or session sees it: it waits for a turn in no session. Between its due
    time and the one at which it is ready is what it is delayed by, from its release on.
    """
    followed = {place for places in after for place in places}
    steps: list[ChainStep] = []
    for number, (run, places) in enumerate(zip(runs, after, strict=True)):
        if places:
            parked = replace(run, trigger=Trigger.AFTER, due_at=now, waiting=True, session=None, expires_at=None)
            steps.append(ChainStep(replace(parked, followed=number in followed), tuple(places)))
        else:
            first = run if run.session is None else queued_message(Message(run, sent_at=now), now)
            steps.append(ChainStep(replace(first, followed=number in followed)))
    return steps


def released(id: RunId, policy: str, due_at: Micros, ready_at: Micros, ended_at: Micros) -> Released:
    """A parked run, all of whose upstreams have succeeded, the last of them then: its delay and max age count from
    there."""
    try:
        said = load_policy(policy)
    except NotLoadable:  # the runner says so
        said = DEFAULT
    released_at = max(ended_at, due_at)
    due = released_at + max(ready_at - due_at, 0)
    expires_at = None if said.max_age is None else due + micros_of(said.max_age)
    return Released(id, released_at, due, expires_at, said.session, due_at)


def why_left_out(upstream: str, end: RunEnd) -> str | None:
    """Why a run that comes after this end is not run, for people; None if it may be."""
    if end.state in FOLLOWED[On.SUCCESS]:
        return None
    return left_out(ended_text(end.run, upstream, end.state))
