"""Settings: defaults < ostinato.toml < OSTINATO_* < arguments. Read once, by the app or the command line."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from zoneinfo import available_timezones

from ostinato.durations import parse_duration
from ostinato.errors import InvalidInput
from ostinato.models.lane import DEFAULT_LANES, Rate, parse_rate
from ostinato.models.policy import MOST
from ostinato.timing.zones import check_zone

__all__ = ["Settings", "load_settings", "without_password"]

CONFIG_FILE = "ostinato.toml"
SHORTEST_LEASE = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that can be set without code; docs/reference/settings.md explains each."""

    db: str = "sqlite:///ostinato.db"
    schema: str = "ostinato"
    tz: str = "UTC"
    app: str | None = None
    slots: int = 256
    lanes: Mapping[str, int] = field(default_factory=dict)
    """Limits that were set; the four default lanes exist anyway."""
    rates: Mapping[str, Rate] = field(default_factory=dict)
    """How many runs may start in a time, for lanes that have such a bound."""
    grace: timedelta = timedelta(seconds=30)
    misfire_grace: timedelta = timedelta(seconds=5)
    lease: timedelta = timedelta(seconds=15)

    @property
    def lane_limits(self) -> dict[str, int]:
        """Every lane that shall exist, with its limit."""
        return {**DEFAULT_LANES, **self.lanes}


def without_password(url: str) -> str:
    """A database URL as it may be shown."""
    url = re.sub(r"(://[^/?#:@]*:).+@", r"\1***@", url)
    return re.sub(r"([?&](?:ssl)?password=)[^&#]*", r"\1***", url, flags=re.IGNORECASE)


_NAMES = {setting.name for setting in fields(Settings)}


def load_settings(
    folder: Path | None = None, environment: Mapping[str, str] | None = None, **arguments: Any
) -> Settings:
    """The settings in force for this folder and environment; arguments that are None do not count."""
    environment = os.environ if environment is None else environment
    given: dict[str, Any] = {"tz": machine_zone(environment)}
    given.update(_from_file((folder or Path.cwd()) / CONFIG_FILE))
    lanes = {**_coerce("lanes", given.get("lanes", {})), **_named(environment, "OSTINATO_LANE_")}
    rates = {**_coerce("rates", given.get("rates", {})), **_named(environment, "OSTINATO_RATE_")}
    given.update(_from_environment(environment))
    given.update({name: value for name, value in arguments.items() if value is not None})
    for name, before in (("lanes", lanes), ("rates", rates)):
        given[name] = {**before, **_coerce(name, arguments.get(name) or {})}
    settings = replace(Settings(), **{name: _coerce(name, value) for name, value in given.items()})
    for lane in settings.rates.keys() - settings.lane_limits.keys():
        raise InvalidInput(f"rates.{lane} is set, but not its limit", field="rates", hint=f"set lanes.{lane} too")
    return settings


def machine_zone(environment: Mapping[str, str]) -> str:
    """The IANA name of the machine's zone; UTC when it does not say."""
    candidates = [environment.get("TZ", "").removeprefix(":")]
    with suppress(OSError):
        candidates.append(Path("/etc/timezone").read_text(encoding="utf-8").strip())
    with suppress(OSError):
        candidates.append(str(Path("/etc/localtime").resolve()).partition("zoneinfo/")[2])
    for name in candidates:
        if name and name in available_timezones():
            return name
    return "UTC"


def _from_file(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"{path.name} is not valid TOML: {error}", field=path.name) from error
    for name in found:
        if name not in _NAMES:
            known = ", ".join(sorted(_NAMES))
            raise InvalidInput(f"{path.name} has the unknown setting {name!r}", field=name, hint=f"known are {known}")
    return found


def _from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    return {
        name: value
        for name in _NAMES - {"lanes", "rates"}
        if (value := environment.get(f"OSTINATO_{name.upper()}")) is not None
    }


def _named(environment: Mapping[str, str], prefix: str) -> dict[str, str]:
    """The variables that name a lane, by its name."""
    return {name.removeprefix(prefix).lower(): value for name, value in environment.items() if name.startswith(prefix)}


def _coerce(name: str, value: Any) -> Any:
    match name:
        case "slots":
            return _whole(name, value)
        case "lanes":
            if not isinstance(value, Mapping):
                raise InvalidInput(f"lanes cannot be {value!r}", field=name, hint="write [lanes] and main = 30")
            return {_lane(lane): _whole(f"lanes.{lane}", limit) for lane, limit in value.items()}
        case "rates":
            if not isinstance(value, Mapping):
                raise InvalidInput(f"rates cannot be {value!r}", field=name, hint='write [rates] and main = "10/m"')
            return {
                lane: rate if isinstance(rate, Rate) else parse_rate(rate, f"rates.{lane}")
                for lane, rate in value.items()
            }
        case "lease":
            lease = parse_duration(value, field=name)
            if lease < SHORTEST_LEASE:
                raise InvalidInput(f"lease cannot be {value!r}", field=name, hint="give 1s or more; 15s is the default")
            return lease
        case "grace" | "misfire_grace":
            return parse_duration(value, field=name)
        case "tz":
            return check_zone(value)
        case _:
            if value is not None and not isinstance(value, str):
                raise InvalidInput(f"{name} cannot be {value!r}", field=name, hint="give text")
            return value


def _lane(name: Any) -> str:
    if not isinstance(name, str) or not name.strip():
        raise InvalidInput(f"a lane cannot be called {name!r}", field="lanes", hint="as in OSTINATO_LANE_MAIL=3")
    return name


def _whole(name: str, value: Any) -> int:
    try:
        number = int(value)
    except (TypeError, ValueError):
        number = 0
    if not 1 <= number <= MOST or isinstance(value, bool):
        raise InvalidInput(f"{name} cannot be {value!r}", field=name, hint="give a whole number from 1")
    return number
