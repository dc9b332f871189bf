"""Which schedule each job of a crontab is, and which schedules of an earlier import have no line any more.

Pure, between `crontab.py`, which reads the file, and `import_crontab.py`, which carries the plan out.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import PurePath
from typing import TYPE_CHECKING, Literal

from ostinato.errors import InvalidInput
from ostinato.models.work import Shell

if TYPE_CHECKING:
    from ostinato.cli.schedule.crontab import CrontabJob
    from ostinato.models.policy import Policy
    from ostinato.models.schedule import Schedule

__all__ = ["OWNER", "Line", "Plan", "base_name", "make_plan"]

OWNER = "crontab:"
"""What the owner of an imported schedule begins with; the name of its crontab follows."""
_PASSED_OVER = re.compile(
    r"(\w+=\S*\s+|cd\s+\S+\s*(&&|;)\s*|(sudo|nice|ionice|chronic|exec|time)\s+(-\S+\s+(\d+\s+)?)*)*"
)
"""What may stand before the program in a command: it says nothing of what the command is."""
_LONGEST = 100
"""Of what a name has of its program: with the rest, it is one of a schedule."""


@dataclass(frozen=True, slots=True)
class Line:
    """A job, and the schedule that it is to be."""

    job: CrontabJob
    name: str
    work: Shell
    timing: str
    zone: str
    did: Literal["added", "changed", "unchanged", "taken"]
    """What an import does to the schedule of this name; `taken`: it is not of this crontab."""
    before: Schedule | None


@dataclass(frozen=True, slots=True)
class Plan:
    """What becomes of a crontab."""

    lines: Sequence[Line]
    missing: Sequence[Schedule]
    """Schedules of an earlier import of this crontab that no line is, and that are on."""

    def taken(self) -> InvalidInput | None:
        """That names are in use already."""
        found = [(line, line.before) for line in self.lines if line.did == "taken" and line.before is not None]
        if not found:
            return None
        names = ", ".join(f"{line.name!r} (line {line.job.line})" for line, _ in found)
        sources = {one.owner.removeprefix(OWNER) for _, one in found if one.owner.startswith(OWNER)}
        so = f"{names}: there is such a schedule, which no import of this crontab has made"
        hint = "give --prefix, such as --prefix cron-, for other names"
        if sources:
            of = " and ".join(sorted(sources))
            hint = f"it is of the crontab {of}: name that with --source if it is this one, or give --prefix"
        return InvalidInput(so, field="file", hint=hint)

    def twice(self) -> InvalidInput | None:
        """That a job which was changed in the crontab would run beside what it was before."""
        old: dict[str, list[str]] = defaultdict(list)
        for schedule in self.missing:
            if isinstance(schedule.work, Shell):
                old[_program(_text_of(schedule.work))].append(schedule.name)
        for line in self.lines:
            if line.did == "added" and (names := old.get(_program(line.job.command))):
                return InvalidInput(
                    f"line {line.job.line} is new ({line.name!r}), and no line is {_listed(names)} any more: "
                    "if that is the same job, it would run twice",
                    field="file",
                    hint="give --disable-missing to switch the old one off, or --keep-missing to let both run",
                )
        return None


def make_plan(
    jobs: Sequence[CrontabJob],
    works: Sequence[Shell],
    existing: Iterable[Schedule],
    *,
    zone: str,
    prefix: str,
    owner: str,
    policy: Policy,
) -> Plan:
    """What an import does. `existing` are all schedules, `owner` is whose those of this crontab are."""
    known = {schedule.name: schedule for schedule in existing}
    own = {name: schedule for name, schedule in known.items() if schedule.owner == owner}
    pairs = list(zip(jobs, works, strict=True))
    names = _names(pairs, own, zone, prefix)
    lines = []
    for (job, work), name in zip(pairs, names, strict=True):
        timing, before = job.bound(zone), known.get(name)
        if before is None:
            did: Literal["added", "changed", "unchanged", "taken"] = "added"
        elif before.owner != owner:
            did = "taken"
        else:
            same = _is(before, job, work, zone) and before.policy == policy and before.project is None
            did = "unchanged" if same else "changed"
        lines.append(Line(job, name, work, timing.text_within(timing.zone), timing.zone or zone, did, before))
    missing = [schedule for name, schedule in own.items() if schedule.enabled and name not in set(names)]
    return Plan(lines, sorted(missing, key=lambda schedule: schedule.name))


def _names(pairs: Sequence[tuple[CrontabJob, Shell]], own: Mapping[str, Schedule], zone: str, prefix: str) -> list[str]:
    """A name for each job. Where several do the same, each keeps the schedule that it was before."""
    names = [""] * len(pairs)
    groups: dict[str, list[int]] = defaultdict(list)
    for place, (job, _) in enumerate(pairs):
        groups[f"{prefix}{base_name(job)}"].append(place)
    for base, places in groups.items():
        free = _numbered(base, own)
        for place in places:
            exact = (name for name in free if _is(own[name], *pairs[place], zone))
            if (name := next(exact, None)) is not None:
                names[place] = name
                free.remove(name)
        left = [place for place in places if not names[place]]
        used = {names[place] for place in places} | set(free)
        fresh = (name for n in count(1) if (name := base if n == 1 else f"{base}-{n}") not in used)
        for place in left:
            names[place] = free.pop(0) if free else next(fresh)
    return names


def _numbered(base: str, own: Mapping[str, Schedule]) -> list[str]:
    """The schedules of this name that are there, those first that are on."""
    same = re.compile(rf"{re.escape(base)}(?:-(\d+))?")
    found = [
        (not one.enabled, int(match[1] or 1), name) for name, one in own.items() if (match := same.fullmatch(name))
    ]
    return [name for _, _, name in sorted(found)]


def _is(schedule: Schedule, job: CrontabJob, work: Shell, zone: str) -> bool:
    timing = job.bound(zone)
    return (schedule.timing, schedule.zone, schedule.work) == (timing.text_within(timing.zone), timing.zone, work)


def base_name(job: CrontabJob) -> str:
    """After its program, and what it does for whom. Not after its timing, zone and variables, so that a change of
    these changes the schedule, nor after its place, so that a line more changes no other's name."""
    digest = hashlib.blake2b(f"{job.user}\0{job.command}".encode(), digest_size=3).hexdigest()
    return f"{_program(job.command)}-{digest}"


def _program(command: str) -> str:
    first = command.removeprefix("{\n").lstrip()
    passed = _PASSED_OVER.match(first)
    words = first[passed.end() if passed is not None else 0 :].split()
    name = re.sub(r"[^\w.-]", "", PurePath(words[0]).name) if words else ""
    return name.lstrip("-.")[:_LONGEST] or "job"  # what begins with a hyphen would be a flag of commands


def _text_of(work: Shell) -> str:
    return work.command if isinstance(work.command, str) else work.command[-1]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))
