"""Reads a crontab as cron(8) does: variables, five fields or a macro, a user in system files, and `%` in commands.

Pure: `import_crontab.py` makes schedules of what is found here.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from ostinato.errors import InvalidInput, TimingError

__all__ = ["Crontab", "CrontabJob", "names_of", "read_crontab"]

_VARIABLE = re.compile(r"""\s*(["']?)([A-Za-z_]\w*)\1\s*=\s*(.*?)\s*""")
_PERCENT = re.compile(r"(?<!\\)%")
_PASSED_OVER = re.compile(
    r"(\w+=\S*\s+|cd\s+\S+\s*(&&|;)\s*|(sudo|nice|ionice|chronic|exec|time)\s+(-\S+\s+(\d+\s+)?)*)*"
)
"""What may stand before the program in a command: it says nothing of what the command is."""
_REBOOT = "@reboot"
_INPUT = "OSTINATO_INPUT"
"""The word that ends the input of a command; the input must not have it as a line."""


@dataclass(frozen=True, slots=True)
class CrontabJob:
    """A line with a command."""

    line: int
    timing: str
    command: str
    """With its input, if the line had any."""
    user: str | None
    variables: Mapping[str, str]
    """What was set above it."""

    @property
    def zone(self) -> str | None:
        """Its own zone, where that cron knows one."""
        return self.variables.get("CRON_TZ") or None


@dataclass(frozen=True, slots=True)
class Crontab:
    """What is in a file."""

    jobs: Sequence[CrontabJob]
    left_out: Sequence[tuple[int, str]]
    """Lines that have no meaning here, with the reason."""


def read_crontab(text: str, zone: str, *, has_users: bool) -> Crontab:
    """Every job of it. InvalidInput for the first line that cron would not take either, or that we cannot."""
    variables: dict[str, str] = {}
    jobs: list[CrontabJob] = []
    left_out: list[tuple[int, str]] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if (found := _VARIABLE.fullmatch(line)) is not None:
            variables[found[2]] = _unquoted(found[3])
        elif line.split()[0] == _REBOOT:
            left_out.append((number, f"{_REBOOT}: there is no start-up to wait for; start it as a service"))
        else:
            jobs.append(_job(number, line, dict(variables), zone, has_users=has_users))
    return Crontab(jobs, left_out)


def _job(number: int, line: str, variables: Mapping[str, str], zone: str, *, has_users: bool) -> CrontabJob:
    count = (1 if line.lstrip().startswith("@") else 5) + has_users
    words = line.split(None, count)
    if len(words) <= count:
        user = ", a user" if has_users else ""
        wanted = f"five fields or a macro{user}, and a command"
        raise InvalidInput(f"line {number} is {line.strip()!r}, not {wanted}", field="file")
    *fields, rest = words
    owner = fields.pop() if has_users else None
    job = CrontabJob(number, " ".join(fields), _with_input(number, rest.rstrip()), owner, variables)
    from ostinato.timing import parse_timing  # here: a help needs no timings

    try:
        parse_timing(job.timing, tz=job.zone or zone)
    except (TimingError, InvalidInput) as error:
        raise InvalidInput(f"line {number}: {error}", field="file") from None
    return job


def _with_input(number: int, text: str) -> str:
    """Of `command%line%line`, the lines are its input; `\\%` is a percent sign."""
    command, *lines = (part.replace("\\%", "%") for part in _PERCENT.split(text))
    if not lines:
        return command
    if _INPUT in lines:
        raise InvalidInput(f"line {number} has {_INPUT} in its input, which ends the input here", field="file")
    return "\n".join(("{", command, f"}} <<'{_INPUT}'", *lines, _INPUT))


def _unquoted(value: str) -> str:
    return value[1:-1] if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'" else value


def names_of(jobs: Sequence[CrontabJob], prefix: str = "") -> list[str]:
    """A name for each, after its program. Where several have the same, by what they do too: not by their place, so that
    a line more changes no other's name."""
    plain = [f"{prefix}{_program(job.command)}" for job in jobs]
    often = Counter(plain)
    return [name if often[name] == 1 else f"{name}-{_digest(job)}" for name, job in zip(plain, jobs, strict=True)]


def _program(command: str) -> str:
    first = command.removeprefix("{\n").lstrip()
    passed = _PASSED_OVER.match(first)
    words = first[passed.end() if passed is not None else 0 :].split()
    name = re.sub(r"[^\w.-]", "", PurePath(words[0]).name) if words else ""
    return name or "job"


def _digest(job: CrontabJob) -> str:
    return hashlib.blake2b(f"{job.timing}\0{job.user}\0{job.command}".encode(), digest_size=3).hexdigest()
