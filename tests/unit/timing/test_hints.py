"""What people write, with a reading of its own: it is read so, or its hint is, or there is no hint."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ostinato.errors import TimingError
from ostinato.timing import Timing, parse_timing

NOW = datetime(2026, 11, 15, 13, 7, tzinfo=UTC)  # A Sunday.
SPAN, MOST = 120, 40
NAMES = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
ORDINALS = ("first", "second", "third", "fourth", "fifth")
many = settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))

Due = list[datetime]
DayRule = Callable[[date], bool]


@dataclass(frozen=True)
class Asked:
    """A text, and when whoever writes it wants it to be due."""

    text: str
    due: Due


def _on_days(rule: DayRule, minutes: frozenset[int]) -> Due:
    days = (NOW.date() + timedelta(days=day) for day in range(SPAN) if rule(NOW.date() + timedelta(days=day)))
    midnights = (datetime(day.year, day.month, day.day, tzinfo=UTC) for day in days)
    return [
        due
        for midnight in midnights
        for minute in sorted(minutes)
        if (due := midnight + timedelta(minutes=minute)) > NOW
    ]


def _every(step: timedelta) -> Due:
    return [NOW + step * number for number in range(1, MOST + 1)]


def _every_nth(rule: DayRule, minutes: frozenset[int], period: Callable[[date], int], every: int) -> Due:
    plain = _on_days(rule, minutes)
    return [due for due in plain if (period(due.date()) - period(plain[0].date())) % every == 0]


# Times of day.


@st.composite
def _clock(draw: st.DrawFn) -> tuple[str, int]:
    hour, minute = draw(st.integers(0, 23)), draw(st.sampled_from([0, 0, 15, 30, 59]))
    half = "am" if hour < 12 else "pm"
    twelve = f"{hour % 12 or 12}" + (f":{minute:02}" if minute else "")
    forms = [f"{hour}:{minute:02}", f"{hour:02}:{minute:02}", f"{twelve}{half}", f"{twelve} {half}"]
    if hour in (0, 12) and minute == 0:
        forms.append("midnight" if hour == 0 else "noon")
    forms += [f"{hour}.{minute:02}", f"{hour}h{minute:02}", f"{hour} Uhr" if minute == 0 else f"{hour}:{minute} Uhr"]
    if minute == 0 and hour > 12:
        forms += [str(hour), f"{hour}{half}"]
    return draw(st.sampled_from(forms)), hour * 60 + minute


@st.composite
def _times(draw: st.DrawFn) -> tuple[str, frozenset[int]]:
    kind = draw(st.sampled_from(["one", "one", "at", "list", "window", "between"]))
    clocks = draw(st.lists(_clock(), min_size=1, max_size=3))
    if kind in ("one", "at"):
        return ("at " if kind == "at" else "") + clocks[0][0], frozenset({clocks[0][1]})
    if kind == "list":
        # Beside '5pm', a plain '9' may be either.
        halves = {text.endswith(("am", "pm")) for text, _ in clocks}
        is_clear = len(halves) == 1 and not any(text[:2] > "12" and text.endswith("pm") for text, _ in clocks)
        clocks = clocks if is_clear else clocks[:1]
        words = [text for text, _ in clocks]
        joined = draw(st.sampled_from([", ".join(words), " and ".join(words), ",".join(words)]))
        return f"at {joined}", frozenset(minute for _, minute in clocks)
    first, length, step = draw(st.integers(0, 20)), draw(st.integers(1, 3)), draw(st.sampled_from([10, 30, 60]))
    how = {10: "every 10m", 30: "every 30 minutes", 60: "every hour"}[step]
    minutes = frozenset(range(first * 60, (first + length) * 60 + 1, step))
    if kind == "window":
        return f"{first}:00-{first + length}:00 {how}", minutes
    ends = draw(st.sampled_from([f"from {first} to {first + length}", f"between {first}:00 and {first + length}:00"]))
    return draw(st.sampled_from([f"{how} {ends}", f"{ends} {how}"])), minutes


# Days.


@st.composite
def _weekdays(draw: st.DrawFn) -> tuple[str, DayRule]:
    kind = draw(st.sampled_from(["names", "range", "word"]))
    if kind == "word":
        word = draw(st.sampled_from(["weekdays", "weekends", "business days", "workdays"]))
        return word, lambda day: (day.weekday() >= 5) == (word == "weekends")
    spell = draw(st.sampled_from([str.title, str.upper, str.lower, lambda name: name[:3], lambda name: f"{name}s"]))
    if kind == "names":
        days = draw(st.lists(st.integers(0, 6), min_size=1, max_size=3, unique=True))
        words = [spell(NAMES[day]) for day in days]
        joined = draw(st.sampled_from([",".join(words), ", ".join(words), " and ".join(words)]))
        return joined, lambda day: day.weekday() in days
    first, last = draw(st.integers(0, 6)), draw(st.integers(0, 6))
    joiner = draw(st.sampled_from(["-", " - ", " through ", " to ", " thru "]))
    length = (last - first) % 7
    return f"{spell(NAMES[first])}{joiner}{spell(NAMES[last])}", lambda day: (day.weekday() - first) % 7 <= length


def _number(day: int) -> str:
    return f"{day}{'th' if day in (11, 12, 13) else {1: 'st', 2: 'nd', 3: 'rd'}.get(day % 10, 'th')}"


def _is_last(day: date) -> bool:
    return day.day == monthrange(day.year, day.month)[1]


@st.composite
def _month_days(draw: st.DrawFn) -> tuple[str, DayRule]:
    of = draw(st.sampled_from(["of the month", "of every month", "of each month"]))
    kind = draw(st.sampled_from(["numbers", "last", "nth", "last weekday", "workday"]))
    if kind == "numbers":
        days = draw(st.lists(st.integers(1, 28), min_size=1, max_size=2, unique=True))
        words = " and ".join(_number(day) for day in days)
        text = draw(st.sampled_from([f"{words} {of}", f"monthly on the {words}", f"on the {words}", f"every {words}"]))
        return text, lambda day: day.day in days
    if kind == "last":
        return f"last day {of}", _is_last
    weekday, nth = draw(st.integers(0, 6)), draw(st.integers(1, 5))
    name = draw(st.sampled_from([NAMES[weekday], NAMES[weekday][:3]]))
    if kind == "nth":
        ordinal = draw(st.sampled_from([ORDINALS[nth - 1], _number(nth)]))
        text = draw(
            st.sampled_from([f"{ordinal} {name} {of}", f"every {ordinal} {name} {of}", f"monthly {ordinal} {name}"])
        )
        return text, lambda day: day.weekday() == weekday and (day.day - 1) // 7 == nth - 1
    if kind == "last weekday":
        text = draw(st.sampled_from([f"last {name} {of}", f"last {name}", f"every last {name}"]))
        return text, lambda day: day.weekday() == weekday and (day + timedelta(7)).month != day.month
    word = draw(st.sampled_from(["workday", "business day", "weekday"]))
    rest = [timedelta(days) for days in (1, 2, 3)]
    return (
        f"last {word} {of}",
        lambda day: (
            day.weekday() < 5
            and not any((day + ahead).month == day.month and (day + ahead).weekday() < 5 for ahead in rest)
        ),
    )


@st.composite
def _on_some_days(draw: st.DrawFn) -> Asked:
    times, minutes = draw(_times())
    kind = draw(st.sampled_from(["daily", "weekly", "monthly", "quarterly"]))
    if kind == "daily":
        word = draw(st.sampled_from(["daily", "every day", "each day", "everyday", "Daily"]))
        text = draw(st.sampled_from([f"{word} {times}", f"{times} {word}"]))
        return Asked(text, _on_days(lambda day: True, minutes))
    if kind == "quarterly":
        days = _on_days(lambda day: day.day == 1 and day.month % 3 == 1, minutes)
        # A number alone would be a day.
        at = "at " if times.isdecimal() else ""
        return Asked(f"{draw(st.sampled_from(['quarterly', 'every quarter']))} {at}{times}", days)
    if kind == "monthly":
        words, rule = draw(_month_days())
        return Asked(f"{words} {times}", _on_days(rule, minutes))
    words, rule = draw(_weekdays())
    before = draw(st.sampled_from(["", "on ", "every ", "weekly ", "each "]))
    text = draw(st.sampled_from([f"{before}{words} {times}", f"{times} on {words}"]))
    return Asked(text, _on_days(rule, minutes))


@st.composite
def _intervals(draw: st.DrawFn) -> Asked:
    number, unit = draw(st.integers(1, 90)), draw(st.sampled_from(["second", "minute", "hour", "day", "week"]))
    step = timedelta(**{f"{unit}s": number})
    one = timedelta(**{f"{unit}s": 1})
    forms: list[tuple[str, timedelta]] = [
        (f"every {number} {unit}s", step),
        (f"every {number}{unit[0]}", step),
        (f"@every {number}{unit[0]}", step),
        (f"{number} {unit}s", step),
        (f"{number}{unit[0]}", step),
        (f"every other {unit}", one * 2),
        (f"every third {unit}", one * 3),
    ]
    if unit in ("day", "hour"):
        often = draw(st.sampled_from([2, 3, 4, 6]))
        forms.append(
            (f"{'twice' if often == 2 else f'{often} times'} {draw(st.sampled_from(['a', 'per']))} {unit}", one / often)
        )
    forms += [
        ("@secondly", timedelta(seconds=1)),
        ("@minutely", timedelta(minutes=1)),
        ("every fortnight", timedelta(14)),
        ("secondly", timedelta(seconds=1)),
        ("minutely", timedelta(minutes=1)),
        ("every half hour", timedelta(minutes=30)),
        ("every quarter of an hour", timedelta(minutes=15)),
    ]
    text, found = draw(st.sampled_from(forms))
    return Asked(text, _every(found))


@st.composite
def _every_nth_period(draw: st.DrawFn) -> Asked:
    times, minutes = draw(_times())
    every = draw(st.integers(2, 4))
    counts = [f"every {every}", *({2: ["every other", "every second"], 3: ["every third"]}.get(every, []))]
    count = draw(st.sampled_from(counts))
    s = "s" if count[-1].isdigit() else ""
    if draw(st.booleans()):
        due = _every_nth(lambda day: True, minutes, date.toordinal, every)
        return Asked(f"{count} day{s} {times}", due)
    words, rule = draw(_weekdays())
    due = _every_nth(rule, minutes, lambda day: (day - timedelta(day.weekday())).toordinal() // 7, every)
    return Asked(f"{count} week{s} on {words} {times}", due)


asked = _on_some_days() | _intervals() | _every_nth_period()


def _read(text: str) -> Timing | None:
    """As it is read, or as its hint is; None if it has none."""
    try:
        return parse_timing(text, "UTC", now=NOW)
    except TimingError as error:
        return parse_timing(error.hint, "UTC", now=NOW) if error.hint else None


def _due(timing: Timing, most: int) -> Due:
    found: Due = []
    due = timing.anchored(NOW).next_after(NOW)
    while due is not None and len(found) < most:
        found.append(due)
        due = timing.anchored(NOW).next_after(due)
    return found


@many
@given(asked)
@example(Asked("monday through friday 9am", _on_days(lambda day: day.weekday() < 5, frozenset({540}))))
@example(Asked("@secondly", _every(timedelta(seconds=1))))
@example(Asked("every other day", _every(timedelta(days=2))))
@example(Asked("every weekday at 9", _on_days(lambda day: day.weekday() < 5, frozenset({540}))))
def test_what_people_write_means_what_they_want(asked: Asked) -> None:
    timing = _read(asked.text)
    assert timing is not None, asked.text
    expected = asked.due[:MOST]
    assert _due(timing, len(expected)) == expected


@st.composite
def _with_typo(draw: st.DrawFn) -> Asked:
    one = draw(asked)
    words = one.text.split(" ")
    long = [index for index, word in enumerate(words) if len(word) > 5 and word.isalpha()]
    if not long:
        return one
    index = draw(st.sampled_from(long))
    word, at = words[index], draw(st.integers(0, len(words[index]) - 2))
    behind = max(at, 1)  # people seldom get the first letter wrong
    changed = [
        word[:at] + word[at + 1] + word[at] + word[at + 2 :],
        word[:at] + word[at + 1 :],
        word[:at] + word[at] + word[at:],
        word[:behind] + draw(st.sampled_from("aeiourstn")) + word[behind + 1 :],
    ]
    words[index] = draw(st.sampled_from(changed))
    return Asked(" ".join(words), one.due)


@many
@given(_with_typo())
def test_a_misspelled_word_is_put_right_or_left_alone(asked: Asked) -> None:
    timing = _read(asked.text)
    if timing is not None:
        expected = asked.due[:MOST]
        assert _due(timing, len(expected)) == expected


@st.composite
def _with_days_off(draw: st.DrawFn) -> Asked:
    words, rule = draw(_weekdays() | st.just(("daily", lambda day: True)) | _month_days())
    off, is_off = draw(_weekdays())
    times, minutes = draw(_times())
    where = draw(st.sampled_from(["behind the days", "behind the days off", "before the days off"]))
    if where == "behind the days":
        text = f"{words} {times} except {off}"
    elif where == "behind the days off":
        text = f"{words} except {off} {times}"
    else:
        text = f"{words} except {times} on {off}"
    return Asked(text, _on_days(lambda day: rule(day) and not is_off(day), minutes))


@many
@given(_with_days_off())
def test_a_time_behind_except_is_that_of_the_timing_before_it(asked: Asked) -> None:
    timing = _read(asked.text)
    if timing is not None or asked.due:
        assert timing is not None, asked.text
        expected = asked.due[:MOST]
        assert _due(timing, len(expected)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "biweekly",
        "bimonthly",
        "every second monday at 9",
        "every third friday 17:00",
        "daily 1-5pm every 1h",
        "daily at 9 and 5pm",
        "weekdays 22-6 every 1h",
        "daily soon",
        "every monday evening",
        "every 5",
        "every now and then",
        "sometimes",
        "next friday",
        "twice a week",
        "monthly 32",
        "daily 25:00",
        "60 * * * *",
        "0 25 * * *",
        "*/0 * * * *",
        "0 9 * * 8",
        "0 9 * * monn-friii",
        "0~30 3 * * *",
        "@reboot",
        "sunrise",
        "every 3 hours at 06:00",
        "every 3 days on monday at 9",
        "L",
        "daily 9 in Nope",
        "daily 9 in GMT+2",
        "daily 9 or monthly 1 except friday at 9",
        "daily 9 except 12-25 at 9",
        "second",
        "third",
        "fourth",
        "first",
        "last",
        "Second",
        "at 03/04/2026 9:00",
        "03.04.2026 9:00",
        "daily 9 except 03/04",
        "daily 9 except 3/4/2026",
        "daily 3 times",
        "every day 3 times",
        "dec 24 18:00",
        "daily 9 except sunday Europe/Berlin",
        "monthly last in december",
        "weekdays 9-17 every 7m in december",
        "every february 30",
        "daily 9 except holidays(Limburg)",
        "daily 9 except holidays(United)",
        "daily 9 except holidays at 9 but not now",
        "30m after import",
        "every 24.12",
        "at 24.13.2026 9:00",
        "at 18:00 3 times",
        "daily 9 except holidays(Georgia)",
        "2h after import",
        "every 12/24",
        "daily 9 except 5.12",
        "daily 9 GMT+2",
        "triweekly",
        "triweekly monday 9",
        "biannually",
        "quarterhourly",
        "daily 9 jitter 5m unstable",
        "last FRIL 17:00",
        "0 9 * * LFRI",
        "2#1 9,17",
        "FRIL at the end",
        "1h30",
        "1h30 after finish",
        "9",
        "every twenty-five minutes",
        "monthly last two days",
        "every forty five minutes",
        "0 9 28-3/2 * *",
        "0 0 1 1 * 2030-2027",
        "daily 9 or sat 10 except 12-25 in Europe/Berlin",
        "daily 9 or sat 10 from 2027-01-01 in Europe/Berlin",
    ],
)
def test_of_what_nobody_knows_the_meaning_there_is_no_hint(text: str) -> None:
    with pytest.raises(TimingError) as caught:
        parse_timing(text, "UTC", now=NOW)
    assert caught.value.hint == ""


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("0 22-2 * * *", "0 22,23,0,1,2 * * *"),
        ("*/90 * * * *", "every 90m"),
        ("0 9 * *", "0 9 * * *"),
        ("0 9 1,, * *", "0 9 1 * *"),
        ("0 0 31 2 *", "0 0 L 2 *"),
        ("0 0 15W * *", "0 0 15W * *"),
        ("last friday 17:00", "monthly last fri 17:00"),
        ("0 22-6/2 * * *", "0 22,0,2,4,6 * * *"),
        ("50-10/20 * * * *", "50,10 * * * *"),
        ("0 9 31W 2 *", "0 9 LW 2 *"),
        ("FRIL 17:00", "0 17 * * FRIL"),
        ("15W at 9:30", "30 9 15W * *"),
        ("L-3 9:00", "0 9 L-3 * *"),
        ("every five minutes", "every 5m"),
        ("in two hours and thirty minutes", "in 2h30m"),
        ("every fifty minutes", "every 50m"),
        ("every two weeks on friday", "every 2 weeks on fri"),
        ("daily 9 except 12-25 in Europe/Berlin", "daily 9 in Europe/Berlin except 12-25"),
        ("daily 13pm", "daily 13:00"),
        ("15:00", "daily 15:00"),
        ("2026-12-24", "at 2026-12-24T00:00"),
        ("1798761600", "at 1798761600"),
        ("(daily 9 or dayly 10", "daily 9 or daily 10"),
        ("daily 9 or evry 5m from 2027-01-01", "daily 9 or every 5m from 2027-01-01"),
        ("daily 9:00 excpt weekands", "daily 9:00 except weekends"),
        ("daily 9:00 in Europe/Berln", "daily 9:00 in Europe/Berlin"),
        ("hourly at :30", "30 * * * *"),
        ("from 12 to 13 every hour every day", "daily 12:00-13:00 every 1h"),
        ("13pm daily", "daily 13:00"),
        ("6pm on friday, monday", "weekly mon,fri 18:00"),
        ("15W", "0 0 15W * *"),
        ("LW", "0 0 LW * *"),
        ("L-3", "0 0 L-3 * *"),
        ("FRIL", "0 0 * * FRIL"),
        ("2#1", "0 0 * * 2#1"),
        ("15w", "every 15w"),
        ("weekdays except friday at 9", "weekly mon,tue,wed,thu 09:00"),
        ("weekdays except on friday 9", "weekly mon,tue,wed,thu 09:00"),
        ("weekdays except 9am on fridays", "weekly mon,tue,wed,thu 09:00"),
        ("daily except weekends at 9", "weekdays 09:00"),
        ("daily except (weekends at 9)", "weekdays 09:00"),
        ("daily except weekends 9-17 every 1h", "weekdays 9-17 every 1h"),
        ("every day except sunday at 9", "mon-sat 9:00"),
        ("every month except sunday at 9", "monthly 1 09:00 except sunday"),
        ("every 3 days except sunday at 9", "every 3 days at 9 except sunday"),
        ("weekdays except 12-25 at 9", "weekdays 09:00 except 12-25"),
        ("weekdays except friday except 12-25 at 9", "mon-thu 09:00 except 12-25"),
        ("weekdays in UTC except friday at 9 jitter 5m", "mon-thu 09:00"),
        ("weekdays or sat except friday at 9", "mon-thu 09:00 or sat 09:00"),
        ("minutly", "every 1m"),
        ("2h after finish", "every 2h after finish"),
        ("daily 9 except dec 24 and dec 25", "daily 9 except 12-24,12-25"),
        ("daily 9pm 1 time", "daily 21:00 until 1 run"),
        ("daily 9 except holidays(United States)", "daily 9 except holidays(US)"),
        ("daily 9 except holidays(GB england)", "daily 9 except holidays(GB-ENG)"),
        ("daily 9 except 12/24", "daily 9 except 12-24"),
        ("daily 9 except 12/24, 12/31", "daily 9 except 12-24,12-31"),
        ("24.12.2026 18 Uhr", "at 2026-12-24T18:00"),
        ("24 December 2026 18:00", "at 2026-12-24T18:00"),
        ("Dec 24th, 2026 at 6pm", "at 2026-12-24T18:00"),
        ("at 24.12.2026 18:00", "at 2026-12-24T18:00"),
        ("at 12/24/2026 6pm", "at 2026-12-24T18:00"),
        ("2026/12/24 18:00", "at 2026-12-24T18:00"),
        ("daily 9 in december", "0 9 * 12 *"),
        ("weekdays 9.30 in jan and feb", "30 9 * 1,2 1-5"),
        ("0 9 * * 1-5 Europe/Berlin", "0 9 * * 1-5 in Europe/Berlin"),
        ("0 9 * * 1-5 Europe/Berln", "0 9 * * 1-5 in Europe/Berlin"),
        ("daily 9:00 Europe/Berlin", "daily 9:00 in Europe/Berlin"),
        ("daily 9:00 UTC", "daily 9:00"),
        ("daily 9.30", "daily 9:30"),
        ("daily 17.30", "daily 17:30"),
        ("daily 9h30", "daily 9:30"),
        ("daily 17 Uhr", "daily 17:00"),
        ("daily 9 except 24.12.2026", "daily 9 except 2026-12-24"),
        ("daily 9 except dec 24", "daily 9 except 12-24"),
        ("daily 9 except 24 dec", "daily 9 except 12-24"),
        ("every january 1 at 00:00", "0 0 1 1 *"),
        ("yearly on 12-24 at 9", "0 9 24 12 *"),
        ("every year on the 24th of december at 9.30 in Europe/Berlin", "30 9 24 12 * in Europe/Berlin"),
        ("in an hour", "in 1 hour"),
        ("in half an hour", "in 30m"),
        ("daily 9 3 times", "daily 09:00 until 3 runs"),
        ("every 5m 3 times", "every 5m until 3 runs"),
        ("weekdays 9 without holidays(DE)", "weekdays 9 except holidays(DE)"),
        ("weekly munday 9", "weekly monday 9"),
        ("daily 9 except holidays in DE-BY", "daily 9 except holidays(DE-BY)"),
        ("daily 9 except holidays DE-BY", "daily 9 except holidays(DE-BY)"),
        ("daily 9 except holidays(Bayern)", "daily 9 except holidays(DE-BY)"),
        ("daily 9 except holidays(GER)", "daily 9 except holidays(DE)"),
        ("daily 9 except holidays(de bayern)", "daily 9 except holidays(DE-BY)"),
    ],
)
def test_the_hint_is_of_the_whole_text(text: str, meant: str) -> None:
    timing, wanted = _read(text), parse_timing(meant, "UTC", now=NOW)
    assert timing is not None
    assert _due(timing, 20) == _due(wanted, 20)


@pytest.mark.parametrize(
    ("text", "position", "words"),
    [
        ("second", 0, "the second of what?"),
        ("daily 9 except 12/24", 15, "'12/24' is written 12-24"),
        ("at 03/04/2026 9:00", 3, "'03/04/2026' may be 2026-03-04 or 2026-04-03"),
        ("daily 9 except 12/24,03/04", 21, "'03/04' may be 03-04 or 04-03"),
        ("monthly last in december", 0, "months are written in cron"),
        ("daily 9:00 Europe/Berlin", 11, "a zone is written with 'in'"),
        ("daily 9.30", 6, "'9.30' is written 9:30"),
        ("daily 9 3 times", 8, "so many runs are written 'until 3 runs'"),
        ("weekdays 9 without holidays(DE)", 11, "days are left out with 'except', not 'without'"),
        ("daily 9 except holidays in DE-BY", 15, "written in parentheses: holidays(DE-BY)"),
        ("30m after import", 4, "what runs after another begins when that one ends"),
    ],
)
def test_a_habit_is_named_where_it_stands(text: str, position: int, words: str) -> None:
    with pytest.raises(TimingError) as caught:
        parse_timing(text, "UTC", now=NOW)
    assert words in caught.value.message
    assert caught.value.position == position


@pytest.mark.parametrize(
    "text", ["first monday", "last workday", "monthly last", "on the first", "second of the month"]
)
def test_an_ordinal_with_what_it_counts_is_a_day_of_the_month(text: str) -> None:
    assert parse_timing(text).text.startswith("monthly ")


@pytest.mark.parametrize(
    "text",
    [
        "daily 09:00 except weekly sat,sun 00:00",
        "daily 09:00 except monthly last 18:00",
        "daily 00:00 except weekly fri 09:00",
        "every 1d except weekly sun 09:00",
        "monday or (weekdays 9 except friday at 9)",
        "weekdays except friday at 0:00",
        "daily 9 except (friday or monday at 9)",
    ],
)
def test_a_time_of_excepted_days_is_left_alone_where_the_timing_has_its_own(text: str) -> None:
    """They are whole days, so it says nothing; the texts of timings that are made in Python have one."""
    timing = parse_timing(text, "UTC", now=NOW)
    assert parse_timing(timing.text, "UTC") == timing
