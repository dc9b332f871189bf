"""`Cron`: the classic expression with Debian's DST rules, on top of cronsim.

`cron_fields.py` reads the expression; `wallclock.py` finds its times, since cronsim's own walk steps by whole hours
and so loses times where a zone changes by half an hour (Australia/Lord_Howe).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

from ostinato.durations import Duration
from ostinato.errors import TimingError
from ostinato.timing.base import NO_JITTER, jitter_fields, store
from ostinato.timing.cron_fields import CompiledCron, compile_cron
from ostinato.timing.explain import cron_phrase, month_end_remark
from ostinato.timing.pattern import WallPattern
from ostinato.timing.wallclock import WallClockTiming
from ostinato.timing.zones import check_zone

__all__ = ["Cron"]

_FIELD_LENGTHS = {"second": 60, "minute": 60, "hour": 24}


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Cron(WallClockTiming):
    """Five fields, or six with seconds first; names, lists, ranges, steps, `L`, `#`, `?`, `7` for Sunday, macros.

    Debian's rules: an expression whose minute and hour are both fixed is due once whatever the clock does (in a gap
    at its end); one with a `*` in either, or with seconds, follows the clock: never in a gap, twice in a fold.
    """

    expression: str

    def __init__(
        self, expression: str, tz: str | None = None, *, jitter: Duration = NO_JITTER, stable: bool = False
    ) -> None:
        if not isinstance(expression, str):
            raise TimingError(f"a cron expression is text, not {expression!r}", hint='Cron("30 9 * * 1-5")')
        compile_cron(expression)
        normal = " ".join(expression.split())
        store(
            self,
            expression=normal.lower() if normal.startswith("@") else normal,
            tz=check_zone(tz) if tz is not None else None,
            **jitter_fields(jitter, stable),
        )

    @property
    def compiled(self) -> CompiledCron:
        return compile_cron(self.expression)

    @property
    def pattern(self) -> WallPattern:
        return self.compiled.pattern

    @property
    def follows_clock(self) -> bool:
        return self.compiled.follows_clock

    def _words(self) -> str:
        return self.expression

    def phrase(self) -> str:
        return cron_phrase(self.compiled.fields)

    def _remarks(self, after: datetime, n: int) -> list[str]:
        compiled, remarks = self.compiled, []
        if compiled.last_day > 28:
            remarks.append(month_end_remark(compiled.last_day))
        if compiled.either_day:
            remarks.append("Due when either the day of the month or the day of the week matches, as in cron.")
        # The first three or two fields, from the end, so that five and six fields read alike.
        for (name, length), field in zip(
            reversed(_FIELD_LENGTHS.items()), reversed(compiled.fields[:-3]), strict=False
        ):
            if (step := re.fullmatch(r"\*/(\d+)", field)) and length % int(step[1]):
                remarks.append(f"Steps of {step[1]} in the {name} field start again at 0, so the last one is shorter.")
        return remarks + WallClockTiming._remarks(self, after, n)
