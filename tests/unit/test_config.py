"""Settings: defaults < ostinato.toml < OSTINATO_* < arguments."""

from __future__ import annotations

import inspect
from dataclasses import fields
from datetime import timedelta
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from ostinato import Ostinato
from ostinato.config import SHORTEST_LEASE, Settings, db_argument, load_settings, split_address, switched_off
from ostinato.errors import InvalidInput, TimingError
from ostinato.models.setting_options import SettingOptions
from ostinato.tuning import DEFAULT_TUNING
from tests.closed_folders import close

SETTINGS = {setting.name for setting in fields(Settings)} - {"tuning", "disabled_by"}


def write(folder: Path, text: str) -> Path:
    (folder / "ostinato.toml").write_text(text, encoding="utf-8")
    return folder


def test_without_anything_the_defaults_hold(tmp_path: Path) -> None:
    settings = load_settings(tmp_path, {})
    assert (settings.db, settings.slots) == (f"sqlite:///{Path.cwd()}/ostinato.db", 256)
    assert settings.grace == timedelta(seconds=30)
    assert settings.lane_limits == {"main": 30, "subagent": 50, "team": 100, "cron": 30}


def test_each_layer_wins_over_the_one_below(tmp_path: Path) -> None:
    write(tmp_path, 'db = "sqlite:///file.db"\nslots = 10\n')
    environment = {"OSTINATO_DB": "sqlite:///environment.db"}
    assert load_settings(tmp_path, {}).db == f"sqlite:///{Path.cwd()}/file.db"
    assert load_settings(tmp_path, environment).db == f"sqlite:///{Path.cwd()}/environment.db"
    assert load_settings(tmp_path, environment, db="argument.db").db == f"sqlite:///{Path.cwd()}/argument.db"
    assert load_settings(tmp_path, environment, slots=3).slots == 3
    assert load_settings(tmp_path, environment).slots == 10


@pytest.mark.parametrize("db", ["sqlite://:memory:", "postgresql://user@host/name", "sqlite:////srv/jobs.db"])
def test_a_database_that_is_the_same_from_every_folder_stays_as_it_was_written(tmp_path: Path, db: str) -> None:
    assert load_settings(tmp_path, {}, db=db).db == db


def test_an_argument_that_is_none_does_not_count(tmp_path: Path) -> None:
    assert load_settings(tmp_path, {"OSTINATO_SLOTS": "7"}, slots=None).slots == 7


def test_every_setting_is_an_argument_of_the_app() -> None:
    named = set(inspect.signature(Ostinato).parameters) - {"name", "settings", "clock", "more"}
    assert named | set(get_type_hints(SettingOptions)) == SETTINGS
    assert not named & set(get_type_hints(SettingOptions))


def test_a_setting_in_code_wins_over_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OSTINATO_GRACE", "20s")
    monkeypatch.setenv("OSTINATO_LEASE", "25s")
    app = Ostinato("sqlite://:memory:", grace="5s", max_result="1MB", hosts=["jobs.example.org"])
    assert (app.settings.grace, app.settings.lease) == (timedelta(seconds=5), timedelta(seconds=25))
    assert (app.settings.max_result, app.settings.hosts) == (1_048_576, ("jobs.example.org",))


@pytest.mark.parametrize("name", ["grcae", "tuning", "folder", "defaults", "disabled_by"])
def test_an_argument_of_the_app_that_is_no_setting_is_told_by_its_name(name: str) -> None:
    with pytest.raises(
        InvalidInput, match=rf"Ostinato\(…\) has the unknown setting '{name}'; .*known: agent_prompt"
    ) as told:
        Ostinato("sqlite://:memory:", **{name: "5s"})  # type: ignore[arg-type]
    assert ("did you mean 'grace'?" in str(told.value)) is (name == "grcae")


def test_a_setting_beside_settings_is_refused_by_its_name() -> None:
    with pytest.raises(InvalidInput, match="not both; put grace into the Settings"):
        Ostinato(settings=Settings(), grace="5s")


def test_lanes_come_from_every_layer_and_the_last_word_wins(tmp_path: Path) -> None:
    write(tmp_path, "[lanes]\nmain = 1\nslow = 2\n")
    environment = {"OSTINATO_LANE_MAIN": "5", "OSTINATO_LANE_FAST": "9"}
    settings = load_settings(tmp_path, environment, lanes={"fast": 11})
    assert settings.lanes == {"main": 5, "slow": 2, "fast": 11}
    assert settings.lane_limits["cron"] == 30


@pytest.mark.parametrize(
    ("in_file", "variable", "argument", "off"),
    [
        (None, None, None, []),
        ("true", "1", True, []),
        ("false", None, None, ["ostinato.toml"]),
        ("false", "1", True, ["ostinato.toml"]),
        ("true", "0", True, ["OSTINATO_ENABLED is 0"]),
        (None, "off", None, ["OSTINATO_ENABLED is off"]),
        ("true", "1", False, ["enabled=False"]),
        ("false", "no", False, ["ostinato.toml", "OSTINATO_ENABLED is no", "enabled=False"]),
    ],
)
def test_of_several_switches_of_the_engine_any_off_wins(
    tmp_path: Path, in_file: str | None, variable: str | None, argument: bool | None, off: list[str]
) -> None:
    if in_file is not None:
        write(tmp_path, f"enabled = {in_file}\n")
    environment = {} if variable is None else {"OSTINATO_ENABLED": variable}
    settings = load_settings(tmp_path, environment, enabled=argument)
    assert settings.enabled is not bool(off)
    why = switched_off(settings, environment)
    assert why is None if not off else why is not None and all(one in why for one in off) and why.count(" and ") < 3
    assert (why or "").count("OSTINATO_ENABLED") <= 1


def test_the_variable_switches_off_also_settings_that_were_made_by_hand() -> None:
    assert switched_off(Settings(), {}) is None
    assert "OSTINATO_ENABLED is 0" in (switched_off(Settings(), {"OSTINATO_ENABLED": "0"}) or "")
    assert "in the settings" in (switched_off(Settings(enabled=False), {"OSTINATO_ENABLED": "1"}) or "")


@pytest.mark.parametrize("wrong", ["maybe", "2"])
def test_a_switch_that_nobody_understands_is_an_error(tmp_path: Path, wrong: str) -> None:
    with pytest.raises(InvalidInput, match="OSTINATO_ENABLED cannot be"):
        load_settings(tmp_path, {"OSTINATO_ENABLED": wrong})


def test_a_variable_that_is_empty_is_as_one_that_is_not_set(tmp_path: Path) -> None:
    write(tmp_path, 'port = 9000\ngrace = "1m"\n')
    names = [f"OSTINATO_{setting.name.upper()}" for setting in fields(Settings)]
    empty = dict.fromkeys([*names, "OSTINATO_LANE_MAIL", "OSTINATO_RATE_MAIL", "OSTINATO_TELEGRAM_TOKEN", "TZ"], "")
    assert load_settings(tmp_path, empty) == load_settings(tmp_path, {})
    assert load_settings(tmp_path, {"OSTINATO_ENABLED": " "}).enabled
    assert switched_off(Settings(), {"OSTINATO_ENABLED": ""}) is None


def test_durations_may_be_text(tmp_path: Path) -> None:
    write(tmp_path, 'grace = "1m30s"\nlease = 20\n')
    settings = load_settings(tmp_path, {"OSTINATO_MISFIRE_GRACE": "2s"})
    assert (settings.grace, settings.lease, settings.misfire_grace) == (
        timedelta(seconds=90),
        timedelta(seconds=20),
        timedelta(seconds=2),
    )


@pytest.mark.parametrize(
    ("text", "field", "says"),
    [
        ("slots = 0", "slots", "whole number from 1"),
        ("slots = true", "slots", "whole number from 1"),
        ('slots = "many"', "slots", "whole number from 1"),
        ('grace = "soon"', "grace", "not a duration"),
        ('login_lifetime = "4m"', "login_lifetime", "give 5m to 3650d"),
        ('login_idle_timeout = "0s"', "login_idle_timeout", "give 5m to 3650d"),
        ('login_idle_timeout = "3651d"', "login_idle_timeout", "give 5m to 3650d"),
        ("lanes = 3", "lanes", r"\[lanes\]"),
        ("[lanes]\nmain = -1", "lanes.main", "whole number from 1"),
        ("db = 5", "db", "give text"),
        ("dbb = 5", "dbb", "unknown setting 'dbb'.*known: agent_prompt, agents, app, db"),
        ("[tuning]\ncheck_seconds = 5", "tuning", "unknown setting 'tuning'"),
        ("db = ", "ostinato.toml", "not valid TOML"),
    ],
)
def test_a_wrong_file_is_told_by_its_field(tmp_path: Path, text: str, field: str, says: str) -> None:
    with pytest.raises(InvalidInput, match=says) as raised:
        load_settings(write(tmp_path, text), {})
    assert raised.value.field == field


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ostinato.toml").write_bytes(b"# \xff")
    with pytest.raises(InvalidInput, match=r"ostinato\.toml cannot be read: .*utf-8"):
        load_settings(tmp_path, {})

    def refuse(*_: Any, **__: Any) -> str:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_text", refuse)
    with pytest.raises(InvalidInput, match=r"ostinato\.toml cannot be read: .*Permission denied") as raised:
        load_settings(tmp_path, {})
    assert raised.value.field == "ostinato.toml"


def test_a_folder_that_this_user_may_not_look_into_has_no_settings_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    close(write(tmp_path, "slots = 3"), monkeypatch)
    assert load_settings(tmp_path, {}).slots == Settings().slots


def test_a_wrong_lane_in_the_environment_is_told_by_its_name(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"lanes\.fast cannot be 'many'"):
        load_settings(tmp_path, {"OSTINATO_LANE_FAST": "many"})


def test_the_zone_is_the_machines_unless_somebody_says_another(tmp_path: Path) -> None:
    assert load_settings(tmp_path, {"TZ": ":Europe/Berlin"}).tz == "Europe/Berlin"
    assert load_settings(tmp_path, {"TZ": "Europe/Berlin", "OSTINATO_TZ": "Asia/Kathmandu"}).tz == "Asia/Kathmandu"
    assert load_settings(tmp_path, {"TZ": "Europe/Berlin"}, tz="UTC").tz == "UTC"


def test_a_zone_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TimingError, match=r"(?s)unknown zone 'Mars/Olympus'.*Europe/Berlin"):
        load_settings(tmp_path, {}, tz="Mars/Olympus")


def test_where_the_server_listens_comes_from_every_layer(tmp_path: Path) -> None:
    defaults = load_settings(tmp_path, {})
    assert (defaults.host, defaults.port, defaults.hosts) == ("127.0.0.1", 8321, ())
    (tmp_path / "ostinato.toml").write_text('host = "::1"\nport = 9000\nhosts = ["Jobs.example.org"]', encoding="utf-8")
    from_file = load_settings(tmp_path, {})
    assert (from_file.host, from_file.port, from_file.hosts) == ("::1", 9000, ("jobs.example.org",))
    variables = {"OSTINATO_HOST": "[::]", "OSTINATO_PORT": "80", "OSTINATO_HOSTS": "a.example, b.example:8443"}
    from_variables = load_settings(tmp_path, variables)
    assert (from_variables.host, from_variables.port) == ("::", 80)
    assert from_variables.hosts == ("a.example", "b.example:8443")
    assert load_settings(tmp_path, variables, host="localhost", port=0).port == 0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("host", ""),
        ("host", "localhost:80"),
        ("host", "http://localhost"),
        ("host", "a b"),
        ("port", "http"),
        ("port", -1),
        ("port", 65_536),
        ("port", True),
        ("hosts", "https://jobs.example.org"),
        ("hosts", "*"),
        ("hosts", [80]),
        ("hosts", {"a": 1}),
        ("trusted_proxies", "proxy.example.org"),
        ("trusted_proxies", "10.0.0.0/40"),
        ("trusted_proxies", "0.0.0.0/0"),
        ("trusted_proxies", ["::/0"]),
        ("trusted_proxies", [7]),
        ("trusted_proxies", 7),
        ("tls_cert", 7),
        ("metrics", "nowhere"),
        ("metrics", "http://127.0.0.1:9464"),
        ("metrics", "::1:9464"),
        ("metrics", "127.0.0.1:70000"),
        ("metrics", True),
    ],
)
def test_a_place_where_nobody_can_listen_is_refused(tmp_path: Path, name: str, value: Any) -> None:
    with pytest.raises(InvalidInput) as told:
        load_settings(tmp_path, {}, **{name: value})
    assert told.value.field == name


@pytest.mark.parametrize("given", [{"environment": {"OSTINATO_LEASE": "9s"}}, {"environment": {}, "lease": "9s"}])
def test_a_lease_shorter_than_the_end_of_commands_is_refused_with_the_fix(
    tmp_path: Path, given: dict[str, Any]
) -> None:
    with pytest.raises(InvalidInput, match="give 10s or more") as raised:
        load_settings(tmp_path, **given)
    assert raised.value.field == "lease"
    assert timedelta(seconds=DEFAULT_TUNING.command_kill_seconds) <= SHORTEST_LEASE
    assert load_settings(tmp_path, {}, lease="10s").lease == SHORTEST_LEASE


@pytest.mark.parametrize(
    ("given", "address"),
    [
        ("127.0.0.1:9464", ("127.0.0.1", 9464)),
        ("[::1]:0", ("::1", 0)),
        (":9464", ("127.0.0.1", 9464)),
        (9464, ("127.0.0.1", 9464)),
        ("0.0.0.0:9464", ("0.0.0.0", 9464)),
    ],
)
def test_metrics_are_served_at_an_address_and_a_port(
    tmp_path: Path, given: str | int, address: tuple[str, int]
) -> None:
    found = load_settings(tmp_path, {}, metrics=given).metrics
    assert found is not None
    assert split_address(found) == address
    assert load_settings(tmp_path, {"OSTINATO_METRICS": ""}).metrics is None


def test_trusted_proxies_are_addresses_and_networks(tmp_path: Path) -> None:
    (tmp_path / "ostinato.toml").write_text('trusted_proxies = ["10.0.0.5", "fd00::/8"]', encoding="utf-8")
    assert load_settings(tmp_path, {}).trusted_proxies == ("10.0.0.5", "fd00::/8")
    given = {"OSTINATO_TRUSTED_PROXIES": "10.0.0.5, 192.168.7.0/24", "OSTINATO_TLS_CERT": "a.pem"}
    assert load_settings(tmp_path, given).trusted_proxies == ("10.0.0.5", "192.168.7.0/24")
    assert load_settings(tmp_path, given).tls_cert == "a.pem"


def test_what_is_not_public_is_allowed_for_channels_as_for_http(tmp_path: Path) -> None:
    write(tmp_path, 'http_allow = ["10.0.0.0/8"]\nnotify_allow = ["hooks.internal"]\n')
    settings = load_settings(tmp_path, {"OSTINATO_NOTIFY_ALLOW": "127.0.0.1, 10.0.0.0/8"})
    assert (settings.http_allow, settings.notify_allow) == (("10.0.0.0/8",), ("127.0.0.1", "10.0.0.0/8"))
    for wrong in ("*", "http://host", "host:80", "10.0.0.0/99"):
        with pytest.raises(InvalidInput, match="notify_allow cannot hold"):
            load_settings(tmp_path, {"OSTINATO_NOTIFY_ALLOW": wrong})


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ("https://jobs.example.org/", "https://jobs.example.org"),
        ("http://10.0.0.1:8321/ostinato", "http://10.0.0.1:8321/ostinato"),
        ("", None),
    ],
)
def test_the_public_url_has_no_slash_at_its_end(tmp_path: Path, given: str, read: str | None) -> None:
    assert load_settings(tmp_path, {"OSTINATO_PUBLIC_URL": given}).public_url == read


@pytest.mark.parametrize(
    "wrong", ["jobs.example.org", "ftp://x", "https://", "https://a b", "https://u@h/", "https://h?x"]
)
def test_what_is_no_public_url_is_refused(tmp_path: Path, wrong: str) -> None:
    with pytest.raises(InvalidInput, match="public_url cannot be"):
        load_settings(tmp_path, {}, public_url=wrong)


@pytest.mark.parametrize(
    ("db", "argument"),
    [
        ("sqlite:////srv/jobs.db", "sqlite:////srv/jobs.db"),
        ("sqlite:///:memory:", None),
        ("postgresql://box/jobs", "postgresql://box/jobs"),
        ("postgresql://ada:secret@box/jobs", None),
        ("postgresql://box/jobs?user=ada&password=secret", None),
    ],
)
def test_a_command_names_the_ledger_unless_that_would_tell_a_password(db: str, argument: str | None) -> None:
    assert db_argument(db) == argument
