"""Settings: defaults < ostinato.toml < OSTINATO_* < arguments. Read once, by the app or the command line."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from datetime import timedelta
from ipaddress import ip_network
from pathlib import Path
from typing import Any, get_args
from urllib.parse import unquote
from zoneinfo import available_timezones

from ostinato.agent_clis import BUILT_IN, AgentCli, parse_agents
from ostinato.durations import parse_duration
from ostinato.errors import InvalidInput
from ostinato.logs import LogFormat, LogLevel
from ostinato.models.access import LoginLimits
from ostinato.models.lane import DEFAULT_LANES, Rate, parse_rate
from ostinato.models.policy_values import MOST
from ostinato.models.session_options import NO_DEFAULTS, SessionDefaults, read_session_defaults
from ostinato.models.telegram import NO_TELEGRAM, TelegramSettings, read_telegram_settings, telegram_from_environment
from ostinato.models.work_checks import parse_size
from ostinato.timing.zones import check_zone
from ostinato.trust import require_trust, trusted_places
from ostinato.tuning import DEFAULT_TUNING, Tuning

__all__ = [
    "SYSTEMD_VARIABLES",
    "AgentCli",
    "Settings",
    "absolute_db",
    "check_names",
    "database_file",
    "database_text",
    "db_argument",
    "is_in_memory",
    "load_settings",
    "passwords_in",
    "read_flag",
    "split_address",
    "switched_off",
    "without_password",
]

CONFIG_FILE = "ostinato.toml"
SHORTEST_LEASE = timedelta(seconds=10)
"""As long as it takes to end the commands of a node that was killed: until then nobody may start them anew."""
SYSTEMD_VARIABLES = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID")
"""What systemd tells the one process that it started: not meant for any process of ours."""
SHORTEST_LOGIN, LONGEST_LOGIN = timedelta(minutes=5), timedelta(days=3_650)


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that can be set without code; docs/reference/settings.md explains each."""

    db: str = "sqlite:///ostinato.db"
    schema: str = "ostinato"
    tz: str = "UTC"
    app: str | None = None
    enabled: bool = True
    """Whether this process may start an engine. Of several switches any "off" wins: see `switched_off`."""
    slots: int = 256
    lanes: Mapping[str, int] = field(default_factory=dict)
    """Limits that were set; the four default lanes exist anyway."""
    rates: Mapping[str, Rate] = field(default_factory=dict)
    """How many runs may start in a time, for lanes that have such a bound."""
    grace: timedelta = timedelta(seconds=30)
    misfire_grace: timedelta = timedelta(seconds=5)
    lease: timedelta = timedelta(seconds=15)
    output_cap: int = 1_000_000
    """How many bytes of its output a run keeps."""
    max_result: int = 1_048_576
    """How many bytes of JSON a task may return."""
    http_allow: tuple[str, ...] = ()
    """Networks and hosts that HTTP work may call although they are not public; `private` is all of them."""
    notify_allow: tuple[str, ...] = ()
    """The same for channels: where messages may be sent to although it is not public."""
    public_url: str | None = None
    """Where people open the page, such as https://jobs.example.org: messages link to it."""
    agents: Mapping[str, AgentCli] = field(default_factory=dict)
    """Command lines of AI agents by their names; those of `BUILT_IN` are there anyway."""
    agent_prompt: str | None = None
    """What is added to an agent's system prompt, instead of the built-in text."""
    sessions: SessionDefaults = NO_DEFAULTS
    """How messages wait in their sessions, if neither a task nor their sender says otherwise."""
    telegram: TelegramSettings = NO_TELEGRAM
    """The bot, and the chats that may speak with it."""
    host: str = "127.0.0.1"
    """Where the server listens; another than loopback needs a token, and TLS or a trusted proxy."""
    port: int = 8321
    hosts: tuple[str, ...] = ()
    """Further names by which the server is called, behind a proxy, say."""
    metrics: str | None = None
    """Where `ostinato worker` serves its metrics and its health, such as 127.0.0.1:9464; None for nowhere."""
    login_lifetime: timedelta = timedelta(days=30)
    """After so long a browser has to log in again, whatever it does."""
    login_idle_timeout: timedelta = timedelta(days=7)
    """After so long without a request or an open page it has to log in again, too."""
    tls_cert: str | None = None
    """A file with the certificate that the server speaks TLS with, and its chain."""
    tls_key: str | None = None
    """A file with the key of that certificate."""
    trusted_proxies: tuple[str, ...] = ()
    """Addresses and networks of proxies whose X-Forwarded-For and X-Forwarded-Proto are believed."""
    log_level: LogLevel | None = None
    """How much `up`, `worker` and `web` log; None for what suits the command. In an app, `logging` decides."""
    log_format: LogFormat = "auto"
    """How they write it."""
    disabled_by: tuple[str, ...] = field(default=(), repr=False)
    """The switches that are off, in words. Not a setting: no file and no variable names it."""
    tuning: Tuning = field(default=DEFAULT_TUNING, repr=False)
    """Not a setting, either."""

    def __post_init__(self) -> None:
        # Once, and not at each opening: a program that changes its folder keeps its database.
        object.__setattr__(self, "db", absolute_db(self.db) or self.db)

    @property
    def agent_clis(self) -> dict[str, AgentCli]:
        """Every agent that can be named."""
        return {**BUILT_IN, **self.agents}

    @property
    def login_limits(self) -> LoginLimits:
        """How long a browser stays logged in."""
        return LoginLimits(self.login_lifetime, self.login_idle_timeout)

    @property
    def lane_limits(self) -> dict[str, int]:
        """Every lane that shall exist, with its limit."""
        return {**DEFAULT_LANES, **self.lanes}


_OF_USER = re.compile(r"(?<=://)([^/?#:@]*:)(.+)@")
_PARAMETER = re.compile(r"([?&](?:ssl)?password=)([^&#]*)", re.IGNORECASE)


def database_file(url: str) -> Path | None:
    """The file of a database, as it is called from every folder; None if it is not one."""
    scheme, separator, rest = url.partition("://")
    if separator and scheme != "sqlite":
        return None
    path = rest.removeprefix("/") if separator else url
    return None if path in ("", ":memory:") else Path(os.path.abspath(path))


def is_in_memory(url: str) -> bool:
    """Whether only the process that opens a database can see it."""
    return url.removeprefix("sqlite://").lstrip("/") == ":memory:"


def absolute_db(url: str) -> str | None:
    """The same as a URL."""
    file = database_file(url)
    return None if file is None else f"sqlite:///{file}"


def without_password(url: str) -> str:
    """A database URL as it may be shown."""
    return _PARAMETER.sub(r"\1***", _OF_USER.sub(r"\1***@", url))


def database_text(settings: Settings) -> str:
    """Where the database is, for people."""
    path = database_file(settings.db)
    place = f"{without_password(settings.db)}, schema {settings.schema!r}" if path is None else path
    return f"database {place}"


def db_argument(url: str) -> str | None:
    """What `--db` takes for this database in any folder; None where that would tell a password, or where no other
    process can open it."""
    whole = absolute_db(url) or url
    return None if is_in_memory(url) or without_password(whole) != whole else whole


def passwords_in(url: str) -> list[str]:
    """What must not be shown of a database URL. A password that is the user's name is one only beside that name."""
    found = [password for _, password in _PARAMETER.findall(url)]
    for user, password in _OF_USER.findall(url):
        found.append(f"{user}{password}@" if user == f"{password}:" else password)
    return [*found, *(unquote(password) for password in found)]


_NAMES = {setting.name for setting in fields(Settings)} - {"tuning", "disabled_by"}
_SWITCH = "OSTINATO_ENABLED"


def load_settings(
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    defaults: Mapping[str, Any] | None = None,
    **arguments: Any,
) -> Settings:
    """The settings in force for this folder and environment; arguments that are None do not count.

    `defaults` are those of a framework, for what nobody has set.
    """
    trusted_places()  # a wrong one is told, also where nothing asks for it
    environment = _without_empty(os.environ if environment is None else environment)
    given: dict[str, Any] = {"tz": machine_zone(environment), **(defaults or {})}
    in_file = _from_file((folder or _current_folder()) / CONFIG_FILE)
    given.update(in_file)
    lanes = {**_coerce("lanes", given.get("lanes", {})), **_named(environment, "OSTINATO_LANE_")}
    rates = {**_coerce("rates", given.get("rates", {})), **_named(environment, "OSTINATO_RATE_")}
    if variables := telegram_from_environment(environment):
        given["telegram"] = {**_table("telegram", given.get("telegram", {})), **variables}
    given.update(_from_environment(environment))
    given.update({name: value for name, value in arguments.items() if value is not None})
    for name, before in (("lanes", lanes), ("rates", rates)):
        given[name] = {**before, **_coerce(name, arguments.get(name) or {})}
    given["enabled"] = not (off := _switches_off(in_file, environment, arguments))
    settings = replace(Settings(), disabled_by=off, **{name: _coerce(name, value) for name, value in given.items()})
    for lane in settings.rates.keys() - settings.lane_limits.keys():
        raise InvalidInput(f"rates.{lane} is set, but not its limit", field="rates", hint=f"set lanes.{lane} too")
    return settings


def _switches_off(
    in_file: Mapping[str, Any], environment: Mapping[str, str], arguments: Mapping[str, Any]
) -> tuple[str, ...]:
    """Which of the switches of the engine are off. Unlike other settings, no source overrides another's "off"."""
    switches = (
        (f"enabled is false in {CONFIG_FILE}", "enabled", in_file.get("enabled")),
        (f"{_SWITCH} is {environment.get(_SWITCH)}", _SWITCH, environment.get(_SWITCH)),
        ("the code says enabled=False", "enabled", arguments.get("enabled")),
    )
    return tuple(what for what, called, value in switches if value is not None and not read_flag(called, value))


def switched_off(settings: Settings, environment: Mapping[str, str] | None = None) -> str | None:
    """Why this process starts no engine; None if it may. The variable counts whatever the settings were made of."""
    off = list(settings.disabled_by) or ([] if settings.enabled else ["enabled is False in the settings"])
    variables = _without_empty(os.environ if environment is None else environment)
    off += [one for one in _switches_off({}, variables, {}) if one not in off]
    return f"the engine is switched off: {' and '.join(off)}" if off else None


def machine_zone(environment: Mapping[str, str]) -> str:
    """The IANA name of the machine's zone; UTC when it does not say."""
    candidates = [environment.get("TZ", "").removeprefix(":")]
    with suppress(OSError):
        candidates.append(Path("/etc/timezone").read_text(encoding="utf-8").strip())
    with suppress(OSError):
        candidates.append(str(Path("/etc/localtime").resolve()).partition("zoneinfo/")[2])
    return next((name for name in candidates if name and name in available_timezones()), "UTC")


def _current_folder() -> Path:
    """What settings, a relative database and commands without a folder are looked for in."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise InvalidInput("the current folder was deleted", field="folder", hint="start it in another") from None


def _from_file(path: Path) -> dict[str, Any]:
    if not os.path.isfile(path):  # nor where this user may not look, as after sudo: it is not meant for them
        return {}
    require_trust(path, "the settings file", CONFIG_FILE)
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        wrong = "is not valid TOML" if isinstance(error, tomllib.TOMLDecodeError) else "cannot be read"
        raise InvalidInput(f"{path.name} {wrong}: {error}", field=path.name) from error
    check_names(found, path.name)
    return found


def _without_empty(environment: Mapping[str, str]) -> dict[str, str]:
    """A variable that is there and empty says nothing: `${NAME:-}` of a compose file makes such ones."""
    return {name: value for name, value in environment.items() if value.strip()}


def check_names(given: Iterable[str], place: str) -> None:
    """InvalidInput, if one of these is not the name of a setting."""
    for name in given:
        if name not in _NAMES:
            from difflib import get_close_matches

            close = get_close_matches(str(name), _NAMES, 1)
            hint = f"did you mean {close[0]!r}? " if close else ""
            hint += f"known: {', '.join(sorted(_NAMES))}"
            raise InvalidInput(f"{place} has the unknown setting {name!r}", field=str(name), hint=hint)


def _from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    return {
        name: value
        for name in _NAMES - {"lanes", "rates", "agents", "sessions", "telegram"}
        if (value := environment.get(f"OSTINATO_{name.upper()}")) is not None
    }


def _named(environment: Mapping[str, str], prefix: str) -> dict[str, str]:
    """The variables that name a lane, by its name."""
    return {name.removeprefix(prefix).lower(): value for name, value in environment.items() if name.startswith(prefix)}


def _coerce(name: str, value: Any) -> Any:
    match name:
        case "enabled":
            return read_flag(name, value)
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
        case "output_cap" | "max_result":
            return parse_size(value, name)
        case "http_allow" | "notify_allow":
            return _allowed_hosts(name, value)
        case "public_url":
            return _public_url(value)
        case "host":
            return _bind_host(value)
        case "port":
            return _port(value)
        case "metrics":
            return _metrics_address(value)
        case "hosts":
            return _host_names(value)
        case "trusted_proxies":
            return _trusted_proxies(value)
        case "agents":
            return parse_agents(value)
        case "sessions":
            return value if isinstance(value, SessionDefaults) else read_session_defaults(value)
        case "telegram":
            return read_telegram_settings(value)
        case "lease":
            lease = parse_duration(value, field=name)
            if lease < SHORTEST_LEASE:
                hint = "give 10s or more, the time it takes to end the commands of a killed node; 15s is the default"
                raise InvalidInput(f"lease cannot be {value!r}", field=name, hint=hint)
            return lease
        case "login_lifetime" | "login_idle_timeout":
            return _login_time(name, value)
        case "grace" | "misfire_grace":
            return parse_duration(value, field=name)
        case "log_level" | "log_format":
            return _choice(name, value, get_args(LogLevel if name == "log_level" else LogFormat))
        case "tz":
            return check_zone(value)
        case _:
            if value is not None and not isinstance(value, str):
                raise InvalidInput(f"{name} cannot be {value!r}", field=name, hint="give text")
            return value


def _choice(name: str, value: Any, choices: tuple[str, ...]) -> str | None:
    chosen = value.strip().lower() if isinstance(value, str) else value
    if chosen is not None and chosen not in choices:
        raise InvalidInput(f"{name} cannot be {value!r}", field=name, hint=f"use one of {', '.join(choices)}")
    return chosen


_FLAGS = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}


def read_flag(called: str, value: Any) -> bool:
    """True or False; a variable says 1 or 0, or a word for it. Flask makes numbers of those."""
    if isinstance(value, int) and value in (0, 1):
        return bool(value)
    found = _FLAGS.get(value.strip().lower()) if isinstance(value, str) else None
    if found is None:
        raise InvalidInput(f"{called} cannot be {value!r}", field=called, hint="give true or false; a variable, 1 or 0")
    return found


def _table(name: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidInput(f"{name} cannot be {value!r}", field=name, hint=f"write [{name}] and its settings")
    return value


def _login_time(name: str, value: Any) -> timedelta:
    """When a login is used is noted once a minute: a bound of minutes is the least that can hold."""
    time = parse_duration(value, field=name)
    if not SHORTEST_LOGIN <= time <= LONGEST_LOGIN:
        raise InvalidInput(f"{name} cannot be {value!r}", field=name, hint="give 5m to 3650d")
    return time


def _texts(name: str, value: Any, hint: str) -> tuple[str, ...]:
    """A list of texts; in one text they are separated by commas."""
    parts = [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value
    if not isinstance(parts, (list, tuple)) or not all(isinstance(part, str) for part in parts):
        raise InvalidInput(f"{name} cannot be {value!r}", field=name, hint=hint)
    return tuple(parts)


def _allowed_hosts(name: str, value: Any) -> tuple[str, ...]:
    hint = 'a list of networks and hosts, such as ["10.0.0.0/8", "hooks.internal"], or ["private"]'
    parts = _texts(name, value, hint)
    if not all(part.strip() for part in parts):
        raise InvalidInput(f"{name} cannot be {value!r}", field=name, hint=hint)
    for part in parts:
        if part == "*":
            raise InvalidInput(f"{name} cannot hold '*'", field=name, hint='say ["private"] for all of them')
        if "://" in part or re.fullmatch(r"[^:]+:\d+", part):
            raise InvalidInput(f"{name} cannot hold {part!r}", field=name, hint="leave out scheme and port")
        if "/" in part:
            try:
                ip_network(part, strict=False)
            except ValueError as error:
                raise InvalidInput(f"{name} cannot hold {part!r}: {error}", field=name, hint=hint) from None
    return parts


def _public_url(value: Any) -> str | None:
    """Without a slash at its end; None if there is none."""
    if value is None or value == "":
        return None
    if not isinstance(value, str) or not re.fullmatch(r"https?://[^\s/?#@]+(/[^\s?#]*)?", value):
        hint = "give where people open the page, such as https://jobs.example.org"
        raise InvalidInput(f"public_url cannot be {value!r}", field="public_url", hint=hint)
    return value.rstrip("/")


def _bind_host(value: Any) -> str:
    """A name or an address to listen at, without brackets and port."""
    hint = "give an address or a name, such as 127.0.0.1, ::1 or 0.0.0.0; the port is a setting of its own"
    host = value.strip() if isinstance(value, str) else ""
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    if not re.fullmatch(r"[0-9A-Za-z._-]+|[0-9A-Fa-f:.]+(%[0-9A-Za-z._-]+)?", host):
        raise InvalidInput(f"host cannot be {value!r}", field="host", hint=hint)
    return host


def _port(value: Any) -> int:
    try:
        port = int(value)
    except (TypeError, ValueError):
        port = -1
    if not 0 <= port <= 65_535 or isinstance(value, bool):
        raise InvalidInput(f"port cannot be {value!r}", field="port", hint="give 1 to 65535, or 0 for a free one")
    return port


def split_address(address: str) -> tuple[str, int]:
    """Host and port of an address that `_metrics_address` has read."""
    host, _, port = address.rpartition(":")
    return host.removeprefix("[").removesuffix("]"), int(port)


def _metrics_address(value: Any) -> str | None:
    """`HOST:PORT`; a port alone is one of this machine. None if there is none."""
    if value is None or value == "":
        return None
    hint = "give an address and a port, such as 127.0.0.1:9464, [::1]:9464, or 9464 alone; port 0 is any free one"
    host, _, port = str(value).strip().rpartition(":")
    try:
        found, number = _bind_host(host or "127.0.0.1"), _port(port)
    except InvalidInput:
        raise InvalidInput(f"metrics cannot be {value!r}", field="metrics", hint=hint) from None
    if isinstance(value, bool) or (":" in found and not host.startswith("[")):
        raise InvalidInput(f"metrics cannot be {value!r}", field="metrics", hint=hint)
    return f"[{found}]:{number}" if ":" in found else f"{found}:{number}"


def _host_names(value: Any) -> tuple[str, ...]:
    hint = 'a list of host names as browsers use them, such as ["jobs.example.org"]'
    parts = _texts("hosts", value, hint)
    for part in parts:
        if not re.fullmatch(r"([0-9A-Za-z._-]+|\[[0-9A-Fa-f:.]+\])(:\d{1,5})?", part):
            raise InvalidInput(f"hosts cannot hold {part!r}", field="hosts", hint=hint)
    return tuple(part.lower() for part in parts)


def _trusted_proxies(value: Any) -> tuple[str, ...]:
    hint = 'a list of addresses and networks, such as ["10.0.0.5", "192.168.7.0/24"]'
    parts = _texts("trusted_proxies", value, hint)
    for part in parts:
        try:
            network = ip_network(part, strict=False)
        except ValueError:
            raise InvalidInput(f"trusted_proxies cannot hold {part!r}", field="trusted_proxies", hint=hint) from None
        if network.prefixlen == 0:
            everybody = f"trusted_proxies cannot hold {part!r}, which means everybody"
            raise InvalidInput(everybody, field="trusted_proxies", hint=hint)
    return parts


def _lane(name: Any) -> str:
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise InvalidInput(f"a lane cannot be called {name!r}", field="lanes", hint="as in OSTINATO_LANE_MAIL=3")
    return name


def _whole(name: str, value: Any) -> int:
    try:
        number = int(value)
    except (TypeError, ValueError):
        number = 0
    if not 1 <= number <= MOST or isinstance(value, bool):
        raise InvalidInput(f"{name} cannot be {value!r}", field=name, hint=f"give a whole number from 1 to {MOST}")
    return number
