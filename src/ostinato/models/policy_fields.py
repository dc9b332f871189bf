"""The table of policies: of each its name, type and default, how it is read, and what people are told of it.

The flags of the command line, the schema of REST, the form of the page and the reference are made of it; `policy.py`
reads and writes policies with it. A new policy is one field of `Policy`, and one line of its options for type checkers.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, is_dataclass
from datetime import timedelta
from typing import Annotated, Any, Literal, TypedDict, get_args, get_type_hints

from ostinato.durations import Duration
from ostinato.models.policy_values import About, Budget, CatchUp, Gate, Group, Keep, OnLostLease, Overlap, Retry

__all__ = ["POLICIES", "RUN_ONCE", "MessageOptions", "Policy", "PolicyField", "PolicyOptions"]

_RETRY = Retry()
_KEEP = Keep()


@dataclass(frozen=True, slots=True)
class Policy:
    """How a schedule and its runs are treated; docs/reference/policy.md explains each field."""

    overlap: Annotated[
        Overlap,
        About(
            "Overlap",
            "What happens when it is due and a run of it is still active.",
            Group.DUE,
            choices={
                "skip": "skip this one",
                "queue_one": "one may wait",
                "queue_all": "all wait their turn",
                "cancel_running": "the new one replaces it",
                "allow": "run beside it",
            },
            says={
                "skip": "A due time is skipped while a run is still active.",
                "queue_one": "While a run is active, one more may wait; others are skipped.",
                "queue_all": "Due times wait for the active run and run one after the other.",
                "cancel_running": "A new due time cancels the run that is active.",
                "allow": "Runs may run side by side.",
            },
        ),
    ] = Overlap.SKIP
    catch_up: Annotated[
        CatchUp,
        About(
            "Catch-up",
            "Which due times from downtime are run afterwards.",
            Group.DUE,
            choices={"none": "record them as missed", "latest": "only the last one", "all": "every one, oldest first"},
        ),
    ] = CatchUp.LATEST
    catch_up_window: Annotated[timedelta, About("Catch-up window", "How far back catch-up looks.", Group.DUE)] = (
        timedelta(hours=24)
    )
    catch_up_cap: Annotated[
        int, About("Catch-up cap", "How many due times “all” runs at most; the newest ones.", Group.DUE)
    ] = 1000
    retry: Annotated[
        Retry,
        About(
            "Retry",
            "How many more attempts a failed run gets, and after which delays.",
            Group.FAILURE,
            written=", such as 5, or 5,base=1s,longest=1m",
            is_of_kind=True,
        ),
    ] = _RETRY
    timeout: Annotated[
        timedelta | None,
        About(
            "Timeout",
            "How long one attempt may take.",
            Group.FAILURE,
            written=", such as 5m",
            says={None: "An attempt may take any amount of time.", ...: "An attempt may take {}."},
            is_of_kind=True,
        ),
    ] = None
    soft_timeout: Annotated[
        timedelta | None,
        About(
            "Soft timeout",
            "After this long a function is asked to end, before its timeout ends it.",
            Group.FAILURE,
            written=": a coroutine gets SoftTimeout, and other functions see run.cancelled",
            says={None: "A function is not asked to end early.", ...: "A function is asked to end after {}."},
        ),
    ] = None
    silent: Annotated[
        timedelta | None,
        About(
            "Silent",
            "An attempt that prints and reports nothing for this long is stuck, and is ended.",
            Group.FAILURE,
            says={
                None: "An attempt may be silent for any amount of time.",
                ...: "An attempt that is silent for {} is ended.",
            },
        ),
    ] = None
    max_age: Annotated[
        timedelta | None,
        About(
            "Max age",
            "A run that waited longer than this since it was due expires.",
            Group.DUE,
            says={None: "A run waits as long as needed.", ...: "A run that waited {} expires."},
        ),
    ] = None
    break_after: Annotated[
        int | None,
        About(
            "Break after",
            "This many failures in a row switch the schedule off.",
            Group.FAILURE,
            written=", such as 3",
            says={
                None: "Failures never switch it off.",
                1: "Any failure switches it off.",
                ...: "{} failures in a row switch it off.",
            },
            is_of_kind=True,
        ),
    ] = None
    probe: Annotated[
        timedelta | None,
        About(
            "Probe",
            "When failures have switched it off, one run is tried each time this has passed; a success switches it on.",
            Group.FAILURE,
            written=", such as 1h",
            says={
                None: "Once failures have switched it off, it stays off.",
                ...: "Once failures have switched it off, one run is tried every {}.",
            },
        ),
    ] = None
    fresh: Annotated[
        timedelta | None,
        About(
            "Fresh",
            "It must have succeeded within this time, or it is late and people are told.",
            Group.FAILURE,
            written=", such as 26h",
            says={None: "It may go without a success for any time.", ...: "It is late when {} pass without a success."},
        ),
    ] = None
    lane: Annotated[
        str,
        About(
            "Lane",
            "The pool that limits how many runs are under way at once.",
            Group.WAITING,
            hint="give the name of a lane, such as main",
        ),
    ] = "cron"
    priority: Annotated[int, About("Priority", "Higher goes first in its lane.", Group.WAITING, least=-1_000_000)] = 0
    session: Annotated[
        str | None,
        About(
            "Session",
            "Its runs wait their turn in this session.",
            Group.WAITING,
            written=", such as dm:42",
            says={
                None: "Its runs share no session.",
                ...: "Its runs take turns with all other runs of session {}.",
            },
        ),
    ] = None
    checks: Annotated[
        tuple[str, ...],
        About(
            "Checks",
            "Checks that must pass before it is enabled and before each run.",
            Group.BEFORE,
            flag="check",
            says={(): "No checks.", ...: "Must pass before each run: {}."},
        ),
    ] = ()
    gate: Annotated[
        Gate | None,
        About(
            "Gate",
            'A command before each run, whose last line {"wake": false} skips it.',
            Group.BEFORE,
            written="; or a JSON array",
        ),
    ] = None
    budget: Annotated[
        Budget | None,
        About(
            "Budget",
            "What its runs may cost.",
            Group.COST,
            written=", such as per_run_usd=1,per_day_usd=5,per_day_runs=20",
        ),
    ] = None
    notify: Annotated[
        tuple[str, ...],
        About(
            "Notify",
            "The channels to notify: phone, or phone=failed+missed.",
            Group.TOLD,
            says={(): "No channel is notified.", ...: "Channels: {}."},
        ),
    ] = ()
    ping_url: Annotated[
        str | None,
        About(
            "Ping URL",
            "Called when a run starts (URL/start), succeeds (URL) and fails (URL/fail), as healthchecks expects it.",
            Group.FAILURE,
            written="; may be env:NAME or file:PATH",
            says={None: "Nothing is called when it runs.", ...: "Called when it starts and ends: {}."},
            secret=True,
        ),
    ] = None
    keep: Annotated[
        Keep,
        About("Keep", "How long ended runs are kept.", Group.AFTER, written=": an age, a count, or both: 30d,1000"),
    ] = _KEEP
    remaining: Annotated[
        int | None,
        About(
            "Runs left",
            "It runs this many times, then it is finished.",
            Group.AFTER,
            says={None: "It runs as often as it is due.", 1: "It runs once.", ...: "It runs {} times."},
        ),
    ] = None
    delete_after_run: Annotated[
        bool,
        About(
            "Delete after run",
            "Remove the schedule when its last run has succeeded.",
            Group.AFTER,
            says={True: "It is removed when its last run has succeeded.", False: "It stays when it has finished."},
        ),
    ] = False
    on_lost_lease: Annotated[
        OnLostLease,
        About(
            "Lost lease",
            "What running work does when its node cannot renew its lease.",
            Group.FAILURE,
            choices={"stop": "another node may start it again", "continue": "two attempts may overlap"},
            says={
                "stop": "A run is stopped when its node cannot renew its lease.",
                "continue": (
                    "A run goes on when its node cannot renew its lease, though another node may start it again."
                ),
            },
        ),
    ] = OnLostLease.STOP


RUN_ONCE = "run_once"
"""Another word for `remaining=1`, wherever a policy is given."""


class MessageOptions(TypedDict, total=False):
    """What a message may be sent with: any policy but a session, which is its key. Its lane is an argument."""

    overlap: Overlap | Literal["skip", "queue_one", "queue_all", "cancel_running", "allow"]
    catch_up: CatchUp | Literal["none", "latest", "all"]
    catch_up_window: Duration
    catch_up_cap: int
    retry: Retry | int | Mapping[str, Any]
    timeout: Duration | None
    soft_timeout: Duration | None
    silent: Duration | None
    max_age: Duration | None
    break_after: int | None
    probe: Duration | None
    fresh: Duration | None
    priority: int
    checks: Iterable[str]
    gate: Gate | str | Iterable[str] | Mapping[str, Any] | None
    budget: Budget | Mapping[str, Any] | None
    notify: Iterable[str]
    ping_url: str | None
    keep: Keep | Duration | Mapping[str, Any]
    remaining: int | None
    run_once: bool
    delete_after_run: bool
    on_lost_lease: OnLostLease | Literal["stop", "continue"]


class PolicyOptions(MessageOptions, total=False):
    """A policy as keyword arguments, in every form that is taken; what is not given has its default."""

    lane: str
    session: str | None


@dataclass(frozen=True, slots=True)
class PolicyField:
    """A row of the table, or a part of one: `base` of a retry."""

    name: str
    type: Any
    """Its type where it is not None."""
    is_nullable: bool
    default: Any
    """`inspect.Parameter.empty` of a part that must be given."""
    about: About
    parts: tuple[PolicyField, ...]
    """Those of its value, if it has some."""


def _rows(kind: Any) -> dict[str, PolicyField]:
    """What a dataclass says of its fields."""
    defaults = inspect.signature(kind).parameters
    return {
        name: _row(name, annotated, defaults[name].default)
        for name, annotated in get_type_hints(kind, include_extras=True).items()
    }


def _row(name: str, annotated: Any, default: Any) -> PolicyField:
    kind, about = get_args(annotated)
    is_nullable = types.NoneType in get_args(kind)
    if is_nullable:
        kind = get_args(kind)[0]
    return PolicyField(
        name, kind, is_nullable, default, about, tuple(_rows(kind).values() if is_dataclass(kind) else ())
    )


POLICIES = _rows(Policy)
"""Every policy by its name, in the order in which people see them."""
SECRET_POLICIES = tuple(name for name, field in POLICIES.items() if field.about.secret)
"""Those whose values nobody is shown, unless they are references."""
