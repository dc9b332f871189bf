"""`Cron`: the classic expression with Debian's DST rules.

`cron_lines.py` reads the expression, `cron_sentence.py` says it; `wallclock.py` finds its times.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from ostinato.durations import Duration
from ostinato.errors import TimingError
from ostinato.timing.base import NO_JITTER, Timing, jitter_fields, store
from ostinato.timing.cron_fields import Span
from ostinato.timing.cron_lines import CompiledCron, compile_cron, on_last_day
from ostinato.timing.cron_sentence import cron_phrase
from ostinato.timing.explain import month_end_remark
from ostinato.timing.pattern import WallPattern
from ostinato.timing.wallclock import WallClockTiming
from ostinato.timing.zones import Zone, check_zone

__all__ = ["Cron"]


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Cron(WallClockTiming):
    """Five fields, six with seconds first or a year last, or seven with both; macros.

    Names, lists, ranges, steps, `L`, `L-3`, `15W`, `#`, `?`, `7` for Sunday, and `H`, which the schedule's name
    chooses. Debian's rules: an expression without a `*` in second, minute and hour is due once whatever the clock does
    (in a gap at its end); others follow the clock: never in a gap, twice in a fold.
    """

    expression: str
    name: str | None
    """What its `H` is chosen by; None where it has none, or no name yet."""

    def __init__(
        self,
        expression: str,
        tz: Zone | None = None,
        *,
        name: str | None = None,
        jitter: Duration = NO_JITTER,
        stable: bool = False,
    ) -> None:
        if not isinstance(expression, str):
            raise TimingError(f"a cron expression is text such as '30 9 * * 1-5', not {expression!r}")
        needs_name = compile_cron(expression).needs_name
        normal = " ".join(expression.split())
        store(
            self,
            expression=normal.lower() if normal.startswith("@") else normal,
            name=name if needs_name else None,
            tz=check_zone(tz) if tz is not None else None,
            names_zone=tz is not None,
            **jitter_fields(jitter, stable),
        )

    @property
    def compiled(self) -> CompiledCron:
        # With one argument the cache is faster.
        return compile_cron(self.expression) if self.name is None else compile_cron(self.expression, self.name)

    @property
    def wants_name(self) -> bool:
        return self.compiled.needs_name

    def named(self, name: str) -> Timing:
        return self.replaced(name=name) if self.wants_name else self

    @property
    def pattern(self) -> WallPattern:
        compiled = self.compiled
        if compiled.needs_name:
            raise TimingError(
                f"the H in {self.expression!r} is chosen by the name of a schedule, and there is none",
                text=self.expression,
                position=self.expression.lower().index("h"),
            )
        return compiled.pattern

    @property
    def follows_clock(self) -> bool:
        return self.compiled.follows_clock

    def _words(self) -> str:
        return self.expression

    def phrase(self) -> str:
        return cron_phrase(self.compiled)

    def _remarks(self, after: datetime, n: int) -> list[str]:
        compiled, remarks = self.compiled, []
        if day := compiled.first_missing_day:
            has_months = not compiled.days.month.is_any
            remarks.append(month_end_remark(day, on_last_day(self.expression) if has_months else ""))
        if compiled.days.either:
            remarks.append("Due when either the day of the month or the day of the week matches, as in cron.")
        remarks += [
            f"Steps of {item.step} in the {field.kind} field start again at 0, so the last one is shorter."
            for field in (compiled.second, compiled.minute, compiled.hour)
            for item in field.items
            if isinstance(item, Span) and item.is_whole and item.size % item.step
        ]
        return remarks + WallClockTiming._remarks(self, after, n)
