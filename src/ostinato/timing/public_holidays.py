"""`Holidays`: the public holidays of a country, a part of it or a market, for `A except holidays(DE-BY)`.

The package `holidays` knows them. It is loaded when somebody asks, and a year is computed when a search gets there.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from difflib import SequenceMatcher
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ostinato.errors import TimingError
from ostinato.timing.dates import DaySet

if TYPE_CHECKING:
    from holidays import HolidayBase

__all__ = ["Holidays", "lacks_package"]

_ENGLISH = "en_US"
_quiet = threading.Lock()
"""Who catches warnings changes what the whole process does with them."""
_MISSING = "holidays are computed by a package that is not installed here: pip install 'ostinato[holidays]'"


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Holidays(DaySet):
    """`Holidays("DE")`, `Holidays("DE-BY")`, `Holidays("US-CA")`, `Holidays("NYSE")`; upper or lower case."""

    code: str

    def __init__(self, code: str) -> None:
        object.__setattr__(self, "code", _canonical(code))

    @property
    def text(self) -> str:
        return f"holidays({self.code})"

    def days_phrase(self) -> str:
        return f"on holidays of {self.code}"

    def day_phrase(self, day: date) -> str:
        return f"a holiday of {self.code} ({self.name_of(day)})"

    def covers(self, day: date) -> bool:
        return day in _of_year(self.code, day.year)

    def within(self, first: date, last: date) -> Iterator[date]:
        begin, end = _years(self.code)
        for year in range(max(first.year, begin), min(last.year, end) + 1):
            yield from (day for day in _of_year(self.code, year) if first <= day <= last)

    def name_of(self, day: date) -> str:
        return _of_year(self.code, day.year).get(day, "")


@lru_cache(maxsize=256)
def _canonical(code: str) -> str:
    """A code as it is printed; TimingError if nobody has holidays of it."""
    package = _package()
    if not isinstance(code, str) or not code.strip():
        raise TimingError("holidays of which country or market? As in holidays(DE), holidays(US-CA), holidays(NYSE)")
    whole = code.strip()
    country, dash, part = whole.partition("-")
    country = country.strip().upper()
    markets = set(package.registry.EntityLoader.get_financial_codes())
    if not dash and country in markets:
        return country
    if country not in set(package.registry.EntityLoader.get_country_codes()):
        near = _by_name(package, whole) or _near(whole, [*_codes_by_name(package).values(), *markets], 0.7)
        raise TimingError(f"there are no holidays of {whole!r}", hint=near and f"holidays({near})")
    known = package.country_holidays(country)
    country = str(known.country)
    if not dash:
        return country
    part = part.strip()
    found = _subdivision(known, part)
    if found is None:
        parts = ", ".join(known.subdivisions)
        near = _near(part, known.subdivisions, 0.5)
        raise TimingError(
            f"{country} has no part {part!r}: it has {parts}" if parts else f"the holidays of {country} have no parts",
            hint=near and f"holidays({country}-{near})",
        )
    return f"{country}-{found}"


def _by_name(package: Any, whole: str) -> str:
    """The code of a country or a part of one by its name, if one alone is called so: `Bayern`, `GER`, `de bayern`."""
    names, name = _codes_by_name(package), whole.replace(" ", "").casefold()
    head, _, part = whole.partition(" ")
    country = names.get(head.casefold()) or head.upper()
    inner = _subdivision(package.country_holidays(country), part.strip()) if country in names.values() else None
    if inner:
        return f"{country}-{inner}"
    # Georgia is a country, and a state of the US.
    codes = {*_parts_by_name(package).get(whole.casefold(), ()), *([names[name]] if name in names else [])}
    if not codes and len(name) > 2:
        codes = {code for known, code in names.items() if known.startswith(name)}
    return codes.pop() if len(codes) == 1 else ""


@lru_cache(maxsize=1)
def _parts_by_name(package: Any) -> Mapping[str, Collection[str]]:
    """The codes of parts of countries by their names, which several may share."""
    found: dict[str, set[str]] = {}
    for country in set(_codes_by_name(package).values()):
        for name, part in package.country_holidays(country).subdivisions_aliases.items():
            found.setdefault(name.casefold(), set()).add(f"{country}-{part}")
    return MappingProxyType(found)


def _subdivision(known: HolidayBase, part: str) -> str | None:
    """How the package calls this part of a country, by its code or its name."""
    names = {each.casefold(): each for each in known.subdivisions}
    aliases = {name.casefold(): each for name, each in known.subdivisions_aliases.items()}
    return names.get(part.casefold()) or aliases.get(part.casefold())


def _near(code: str, codes: Iterable[str], alike: float) -> str:
    """The code that somebody meant; empty if none is like it, or several are."""
    meant = code.upper()
    likeness = {
        one: (SequenceMatcher(None, meant, one.upper()).ratio(), one.upper().startswith(meant[:1])) for one in codes
    }
    best = max(likeness.values(), default=(0.0, False))
    found = [one for one, like in likeness.items() if like == best]
    return found[0] if best[0] >= alike and len(found) == 1 else ""


@lru_cache(maxsize=1)
def _codes_by_name(package: Any) -> Mapping[str, str]:
    """The codes of countries by their English names, without spaces."""
    return MappingProxyType({names[0].casefold(): names[1] for names in package.registry.COUNTRIES.values()})


def _package() -> Any:
    try:
        import holidays
        import holidays.registry
    except ModuleNotFoundError as error:
        raise TimingError(_MISSING) from error
    return holidays


def lacks_package(text: str) -> bool:
    """Whether a canonical text names holidays that nobody can compute here."""
    if "holidays(" not in text or text.startswith("after "):
        return False
    try:
        _package()
    except TimingError:
        return True
    return False


def _made(code: str, years: int | None = None, language: str | None = None) -> HolidayBase:
    """The holidays of a canonical code."""
    package = _package()
    country, _, part = code.partition("-")
    given = {"years": years, "language": language, "expand": False}
    if country in set(package.registry.EntityLoader.get_financial_codes()):
        made: HolidayBase = package.financial_holidays(country, **given)
    else:
        made = package.country_holidays(country, part or None, **given)
    return made


@lru_cache(maxsize=256)
def _years(code: str) -> tuple[int, int]:
    """The first year and the last for which there are any."""
    known = _made(code)
    return known.start_year, known.end_year


@lru_cache(maxsize=4096)
def _of_year(code: str, year: int) -> Mapping[date, str]:
    """Each holiday of a year with its name, in English where the package has it."""
    begin, end = _years(code)
    if not begin <= year <= end:
        return MappingProxyType({})
    language = _ENGLISH if _ENGLISH in _made(code).supported_languages else None
    with _quiet, warnings.catch_warnings():
        # Of some countries it knows fewer years, and warns of the others.
        warnings.simplefilter("ignore")
        found = _made(code, year, language)
    return MappingProxyType({day: str(found[day]) for day in sorted(found) if day.year == year})
