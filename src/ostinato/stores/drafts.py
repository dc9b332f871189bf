"""A draft against the schedule that has its name, pure: what a store writes, and whether it writes at all.

First whose word counts for each field (`resolved`, with the rules of `models/declared.py`), then what that changes.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import msgspec

from ostinato.clock import Micros, from_micros, micros_of, to_micros
from ostinato.command_hints import hint
from ostinato.errors import Conflict, NotLoadable, OstinatoError
from ostinato.models.declared import (
    ENABLED,
    PROJECT,
    SOMEBODY,
    TIMING,
    WORK,
    Override,
    declare,
    declared_fields,
    load_declared,
    load_overrides,
    override,
    stored_text,
)
from ostinato.models.policy import Policy, load_policy, policy_text
from ostinato.models.schedule import ScheduleDraft
from ostinato.models.work import Unreadable, load_work, work_text
from ostinato.timing import parse_timing
from ostinato.timing.calendar_days import folded

__all__ = [
    "STORED_COLUMNS",
    "UNSTORED",
    "StoredSchedule",
    "check_replaced",
    "counts_anew",
    "load_stored",
    "merged",
    "new_schedule",
    "resolved",
]

UNSTORED = frozenset({"by", "replaces", "names_zone", "may_switch_on"})
"""What a draft has and a row has not."""

_PERSONS = "user"
"""The owner of what people add; what else has an owner is its own, whoever brings it up to date."""


@dataclass(slots=True, kw_only=True)
class StoredSchedule(ScheduleDraft):
    """A schedule as it is stored: what a draft may change of it, and what it asks about."""

    id: int
    broken: str | None
    orphaned: bool
    failures: int
    paused_since: Micros | None
    off_by: str | None

    @property
    def is_off_by_person(self) -> bool:
        """Whether somebody has switched it off, who wants it to stay so; it may be broken, too: its last run was under
        way then, and has failed."""
        return self.off_by is not None or self.off_note is not None


_NAMES = [field.name for field in fields(StoredSchedule) if field.name not in UNSTORED]
STORED_COLUMNS = ", ".join(_NAMES)


def load_stored(row: Sequence[Any]) -> StoredSchedule:
    """A schedule from STORED_COLUMNS."""
    return StoredSchedule(**dict(zip(_NAMES, row, strict=True)))


def new_schedule(draft: ScheduleDraft, now: Micros) -> ScheduleDraft:
    """A draft of a name that nobody has: one that is disabled has no due time, and of code its word is kept."""
    if draft.origin is None and draft.enabled:
        return draft  # most are: many thousands may be added at once
    declared = None if draft.origin is None else stored_text(declare(None, _says(draft), now)[0])
    return replace(draft, next_at=draft.next_at if draft.enabled else None, declared=declared, overrides=None)


def check_replaced(known: StoredSchedule, draft: ScheduleDraft) -> None:
    """Conflict if the draft is not to replace what another owner or person made, and would change it."""
    if draft.replaces is not False or not _is_anothers(known, draft) or _is_same(known, draft):
        return
    whose = f"by {known.made_by}" if known.owner == _PERSONS and known.made_by is not None else f"by {known.owner!r}"
    raise Conflict(
        f"schedule {known.name!r} exists and was made {whose}: it is not replaced; choose another name, change it with "
        f"{hint('schedule edit', known.name)}, or ask for it with --replace (replace=True)"
    )


def _is_anothers(known: StoredSchedule, draft: ScheduleDraft) -> bool:
    if known.orphaned:
        return False  # its code says nothing of it any more: it is whose will
    if known.owner != draft.owner:
        return True
    return known.owner == _PERSONS and known.made_by is not None and known.made_by != draft.made_by


def _is_same(known: StoredSchedule, draft: ScheduleDraft) -> bool:
    """Whether it says the same of when, what, where and how; the note and the switch are nobody's loss."""
    work = load_work(known.work)
    if isinstance(work, Unreadable):
        return False
    before = (known.timing, known.zone, work_text(work), policy_text(_readable(known.policy)), known.project)
    return before == (draft.timing, draft.zone, draft.work, draft.policy, draft.project)


def resolved(known: StoredSchedule, draft: ScheduleDraft, now: Micros) -> ScheduleDraft:
    """The draft with what stays of the known schedule, for each field: whose word counts.

    Code that declares it is obeyed in what it changed; else what people changed stays. What a person changes of a
    schedule that code declares is noted. The switch is nobody's but the code's, here.
    """
    if draft.origin is not None:
        return _declared(known, draft, now)
    before = load_declared(known.declared)
    is_codes = known.owner == "code" and known.origin is not None
    draft = _with_switch(known, draft)
    if not is_codes or (known.orphaned and draft.owner != "code"):
        owner = draft.owner if draft.replaces or known.orphaned else known.owner
        return replace(draft, owner=owner, declared=None, overrides=None)
    overrides = load_overrides(known.overrides)
    if before is not None:
        after = {**_fields(draft), ENABLED: known.enabled}
        overrides = override(before, overrides, _fields(known), after, Override(draft.by, now))
    return replace(draft, owner=known.owner, declared=known.declared, overrides=stored_text(overrides))


def _declared(known: StoredSchedule, draft: ScheduleDraft, now: Micros) -> ScheduleDraft:
    """What code declares: see `declare`. Without a record of what it said before, all but the switch is taken."""
    before = load_declared(known.declared) if known.owner == "code" else None
    says = _says(draft)
    declared, changed = declare(before, says, now)
    if (
        before is not None
        and not draft.names_zone
        and TIMING in before
        and before[TIMING].value[0] == folded(draft.timing)
    ):
        changed -= {TIMING}  # another machine has another zone: the code says what it said
    overrides: dict[str, Override] = {}
    if before is not None:
        overrides = {field: one for field, one in load_overrides(known.overrides).items() if field not in changed}
    elif known.enabled != says[ENABLED] and known.broken is None and known.remaining != 0:
        overrides = {ENABLED: Override(SOMEBODY, now)}
    kept = replace(draft, declared=stored_text(declared), overrides=stored_text(overrides))
    if TIMING in overrides:
        due = _first_due(known, draft.anchor_at)
        kept = replace(kept, timing=known.timing, zone=known.zone, after_finish=known.after_finish, next_at=due)
        kept = replace(kept, follows=known.follows)
    if WORK in overrides:
        kept = replace(kept, work=known.work, kind=known.kind, task=known.task)
    if PROJECT in overrides:
        kept = replace(kept, project=known.project)
    kept = _with_policies(kept, known.policy, overrides.keys() - {TIMING, WORK, PROJECT, ENABLED})
    return kept if ENABLED in changed else _with_switch(known, kept)


def _with_switch(known: StoredSchedule, draft: ScheduleDraft) -> ScheduleDraft:
    """The draft with the switch as it is; of what has run as often as it should and is to run more, the draft's own."""
    is_finished = not known.enabled and known.remaining == 0 and known.broken is None and not known.is_off_by_person
    is_asked = draft.may_switch_on or not draft.enabled
    if is_finished and is_asked and _counts_anew(known, draft) and (draft.origin is not None or not known.orphaned):
        return draft
    return replace(draft, enabled=known.enabled, off_note=known.off_note)


def _counts_anew(known: StoredSchedule, draft: ScheduleDraft) -> bool:
    return counts_anew(draft, known.timing, known.zone, _readable(known.policy))


def counts_anew(draft: ScheduleDraft, timing: str, zone: str, policy: Policy) -> bool:
    """Whether the count of its runs begins anew: with another timing or number, not with another timeout, say, nor
    with the zone of another machine; it would run more often than was asked."""
    is_retimed = draft.timing != timing or (draft.names_zone and draft.zone != zone)
    return is_retimed or _readable(draft.policy).remaining != policy.remaining


def _with_policies(draft: ScheduleDraft, known: str, kept: Collection[str]) -> ScheduleDraft:
    """The draft with these policies as they are."""
    if not kept:
        return draft
    try:
        stored = msgspec.json.decode(known, type=dict[str, Any])
        given = {name: value for name, value in msgspec.json.decode(draft.policy).items() if name not in kept}
        given |= {name: stored[name] for name in kept if name in stored}
        policy = load_policy(msgspec.json.encode(given).decode())
    except (msgspec.DecodeError, NotLoadable):
        return draft  # what cannot be read is mended by what the code says
    return replace(draft, policy=policy_text(policy), remaining=policy.remaining)


def _says(draft: ScheduleDraft) -> dict[str, Any]:
    """What the code says of each field. One that is off for a reason is on by the code's word."""
    return {**_fields(draft), ENABLED: draft.enabled or draft.off_note is not None}


def _fields(one: ScheduleDraft) -> dict[str, Any]:
    return declared_fields(one.timing, one.zone, one.work, one.policy, one.project, enabled=bool(one.enabled))


def _first_due(known: StoredSchedule, now: Micros) -> Micros | None:
    """When the stored timing is due first, if it begins now; a timing that cannot be read is not due."""
    moment = from_micros(now)
    try:
        timing = parse_timing(known.timing, tz=known.zone, name=known.name, stored=True)
        due = timing.anchored(moment).next_after(moment)
    except OstinatoError:
        return None
    return None if due is None else to_micros(due)


def merged(known: StoredSchedule, draft: ScheduleDraft) -> StoredSchedule | None:
    """The schedule as a resolved draft makes it; None if nothing of it differs.

    Another timing takes the draft's due time, and switches on what the breaker had switched off if the gate let it
    pass; one that code declares again is due again.
    """
    is_retimed = (draft.timing, draft.zone) != (known.timing, known.zone)
    is_mended = known.broken is not None and is_retimed and (known.is_off_by_person or draft.may_switch_on)
    is_switched = draft.enabled != known.enabled
    is_back = known.orphaned and (draft.origin is not None or draft.owner != known.owner)
    note = known.note if draft.note is None else draft.note
    origin = known.origin if draft.origin is None else draft.origin
    before = (known.note, known.origin, known.off_note, known.declared, known.overrides)
    after = (note, origin, draft.off_note, draft.declared, draft.overrides)
    is_other = before != after or _work_of(draft) != _work_of(known)
    if not (is_retimed or is_switched or is_back or is_other):
        return None
    now_known = replace(
        known,
        timing=draft.timing,
        zone=draft.zone,
        work=draft.work,
        kind=draft.kind,
        task=draft.task,
        policy=draft.policy,
        project=draft.project,
        owner=draft.owner,
        made_by=draft.made_by if draft.replaces else known.made_by,
        origin=origin,
        note=note,
        off_note=draft.off_note,
        after_finish=draft.after_finish,
        follows=draft.follows,
        orphaned=known.orphaned and not is_back,
        declared=draft.declared,
        overrides=draft.overrides,
    )
    if is_mended:
        now_known = replace(now_known, broken=None, enabled=known.enabled or not known.is_off_by_person)
    now_known = _probing(known, now_known, draft.anchor_at)
    if is_mended or is_back or (is_retimed and now_known.broken is None):
        is_due = now_known.enabled and now_known.broken is None and not now_known.orphaned
        now_known = replace(now_known, next_at=draft.next_at if is_due else None)
    if _counts_anew(known, draft):
        now_known = replace(now_known, remaining=draft.remaining)
    if _readable(draft.policy).fresh != _readable(known.policy).fresh:
        now_known = replace(now_known, fresh_at=draft.fresh_at)
    if is_retimed:
        now_known = replace(now_known, anchor_at=draft.anchor_at, failures=0)
    return _switched(now_known, draft) if is_switched else now_known


def _probing(known: StoredSchedule, now_known: StoredSchedule, now: Micros) -> StoredSchedule:
    """When one that stays broken is tried, once its policy says another time of that. What is finished or undeclared is
    not tried."""
    before, after = _readable(known.policy).probe, _readable(now_known.policy).probe
    is_over = now_known.remaining == 0 or now_known.orphaned
    if now_known.broken is None or now_known.follows or is_over or before == after:
        return now_known
    return replace(now_known, next_at=None if after is None else now + micros_of(after))


def _switched(now_known: StoredSchedule, draft: ScheduleDraft) -> StoredSchedule:
    """On, it begins anew, and what broke it is cleared."""
    if not draft.enabled:
        return replace(now_known, enabled=False, next_at=None)
    return replace(
        now_known,
        enabled=True,
        broken=None,
        failures=0,
        off_note=None,
        anchor_at=draft.anchor_at,
        next_at=draft.next_at,
        remaining=draft.remaining,
    )


def _work_of(one: ScheduleDraft) -> tuple[str | None, ...]:
    """What it does, how, where and for whom."""
    return (one.work, one.policy, one.project, one.owner)


def _readable(policy: str) -> Policy:
    """A stored policy; the defaults if it cannot be read."""
    try:
        return load_policy(policy)
    except NotLoadable:
        return Policy()
