"""Timings: when something is due, as pure values. Nothing here reads a clock, a file or a database.

Read `base.py` for what a timing is, `text.py` for how it is written; the models and the engine stand above.
"""

from ostinato.timing.after import After, On
from ostinato.timing.at import At
from ostinato.timing.base import Timing
from ostinato.timing.bounds import Bounded, Limited
from ostinato.timing.calendar import DailyAt, Monthly, Quarterly, Weekly
from ostinato.timing.calendar_days import CalendarDays
from ostinato.timing.combine import Except, Or
from ostinato.timing.cron import Cron
from ostinato.timing.dates import Dates, DaySet
from ostinato.timing.every import Every
from ostinato.timing.public_holidays import Holidays
from ostinato.timing.text import parse_timing

__all__ = [
    "After",
    "At",
    "Bounded",
    "CalendarDays",
    "Cron",
    "DailyAt",
    "Dates",
    "DaySet",
    "Every",
    "Except",
    "Holidays",
    "Limited",
    "Monthly",
    "On",
    "Or",
    "Quarterly",
    "Timing",
    "Weekly",
    "parse_timing",
]
