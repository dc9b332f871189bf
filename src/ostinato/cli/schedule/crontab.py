"""Reads a crontab as cron(8) does: variables, five fields or a macro, a user in system files, and `%` in commands.

Pure: `crontab_plan.py` says which schedules these jobs are, and `import_crontab.py` makes them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ostinato.errors import InvalidInput, TimingError
from ostinato.plurals import counted
from ostinato.timing import Timing, parse_timing

__all__ = ["OF_CRON", "Crontab", "CrontabJob", "read_crontab", "wrong_lines"]

OF_CRON = frozenset({"MAILTO", "MAILFROM", "CRON_TZ", "RANDOM_DELAY", "CONTENT_TYPE", "CONTENT_TRANSFER_ENCODING"})
"""What is meant for cron itself, and not for commands."""
_BLANK = " \t"
_VARIABLE = re.compile(r"""[ \t]*(["']?)([A-Za-z_]\w*)\1[ \t]*=[ \t]*(.*?)[ \t]*""", re.ASCII | re.DOTALL)
_REFERENCE = re.compile(r"(env|file):.+", re.DOTALL)
"""What the variables of work have for secrets."""
_COMMAND = re.compile(r"((?:\\.|[^\\%])*\\?)(?:%(.*))?", re.DOTALL)
"""Up to the first plain `%`, and what follows it. A backslash takes the next character with it, also another one."""
_NOT_UTF8 = re.compile("[\udc80-\udcff]")
_REBOOT = "@reboot"
_INPUT = "OSTINATO_INPUT"
"""The word that ends the input of a command; the input must not have it as a line."""


@dataclass(frozen=True, slots=True)
class CrontabJob:
    """A line with a command."""

    line: int
    timing: str
    """With a jitter where a RANDOM_DELAY was set."""
    command: str
    """With its input, if the line had any."""
    user: str | None
    variables: Mapping[str, str]
    """What was set above it."""

    @property
    def zone(self) -> str | None:
        """Its own zone, where that cron knows one."""
        return self.variables.get("CRON_TZ") or None

    def bound(self, zone: str) -> Timing:
        """Its timing, in this zone if it has none of its own."""
        return parse_timing(self.timing, tz=self.zone or zone)


@dataclass(frozen=True, slots=True)
class Crontab:
    """What is in a file."""

    jobs: Sequence[CrontabJob]
    left_out: Sequence[tuple[int, str]]
    """Lines that have no meaning here, with the reason."""


def read_crontab(text: str, zone: str, *, has_users: bool) -> Crontab:
    """Every job of it. InvalidInput names each line that cron would not take either, or that we cannot.

    Bytes that are not UTF-8 come as `surrogateescape` makes them."""
    variables: dict[str, str] = {}
    jobs: list[CrontabJob] = []
    left_out: list[tuple[int, str]] = []
    wrong: list[InvalidInput] = []
    for number, line in enumerate(text.split("\n"), 1):
        line = line.removesuffix("\r").strip(_BLANK)
        if not line or line.startswith("#"):
            continue
        try:
            if _NOT_UTF8.search(line) is not None:
                raise _wrong(number, "it is not UTF-8", hint="convert the file, as with iconv -t utf-8")
            if (found := _VARIABLE.fullmatch(line)) is not None:
                variables[found[2]] = _value(number, found[2], found[3])
            elif re.split("[ \t]", line, maxsplit=1)[0] == _REBOOT:
                left_out.append((number, f"{_REBOOT}: there is no start-up to wait for; start it as a service"))
            else:
                jobs.append(_job(number, line, dict(variables), zone, has_users=has_users))
        except InvalidInput as error:
            wrong.append(error)
    if wrong:
        raise wrong_lines(wrong)
    return Crontab(jobs, left_out)


def wrong_lines(wrong: Sequence[InvalidInput]) -> InvalidInput:
    """All that is wrong with a file, in one error."""
    if len(wrong) == 1:
        return wrong[0]
    return InvalidInput("\n".join([f"{counted(len(wrong), 'line')} are wrong:", *map(str, wrong)]), field="file")


def _wrong(number: int, text: str, hint: str = "") -> InvalidInput:
    return InvalidInput(f"line {number}: {text}", field="file", hint=hint)


def _value(number: int, name: str, text: str) -> str:
    value = text[1:-1] if len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'" else text
    if name not in OF_CRON and _REFERENCE.fullmatch(value):
        hint = f"take the line out, and set {name} in the commands that need it"
        raise _wrong(number, f"{name}={value} would be read as a reference to a secret", hint)
    if name == "RANDOM_DELAY" and not (value.isascii() and (value.isdecimal() or not value)):
        raise _wrong(number, f"RANDOM_DELAY cannot be {value!r}", hint="give minutes, such as 10")
    return value


def _job(number: int, line: str, variables: Mapping[str, str], zone: str, *, has_users: bool) -> CrontabJob:
    count = (1 if line.startswith("@") else 5) + has_users
    words = re.split("[ \t]+", line, maxsplit=count)
    if len(words) <= count:
        user = ", a user" if has_users else ""
        wanted = f"five fields or a macro{user}, and a command"
        raise InvalidInput(f"line {number} is {line!r}, not {wanted}", field="file")
    *fields, rest = words
    owner = fields.pop() if has_users else None
    # Of cronie, which chooses once how long each job waits, and not anew each time.
    delay = int(variables.get("RANDOM_DELAY") or 0)
    timing = " ".join([*fields, f"jitter {delay}m stable"] if delay else fields)
    job = CrontabJob(number, timing, _with_input(number, rest), owner, variables)
    try:
        job.bound(zone)
    except (TimingError, InvalidInput) as error:
        raise _wrong(number, str(error)) from None
    return job


def _with_input(number: int, text: str) -> str:
    """Of `command%line%line`, the lines are its input; `\\%` is a percent sign, and other backslashes stay."""
    found = _COMMAND.fullmatch(text)
    assert found is not None  # it takes any text
    command = re.sub(r"\\(.)", _plain_percent, found[1], flags=re.DOTALL)
    if not found[2]:
        return command
    # Of input, cron reads only the backslash right before a percent sign.
    given = re.sub(r"\\?%", lambda one: "%" if len(one[0]) == 2 else "\n", found[2])
    lines = given.removesuffix("\n").split("\n")
    if _INPUT in lines:
        raise InvalidInput(f"line {number} has {_INPUT} in its input, which ends the input here", field="file")
    return "\n".join(("{", command, f"}} <<'{_INPUT}'", *lines, _INPUT))


def _plain_percent(escaped: re.Match[str]) -> str:
    return "%" if escaped[1] == "%" else escaped[0]
