"""Settings as keyword arguments of `Ostinato(…)`, for type checkers. `config.py` has what they become."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from ostinato.durations import Duration
from ostinato.logs import LogFormat, LogLevel
from ostinato.models.session_options import SessionDefaults
from ostinato.models.telegram import TelegramSettings

__all__ = ["SettingOptions"]


class SettingOptions(TypedDict, total=False):
    """Those that the app does not name itself, in every form that is taken."""

    schema: str
    app: str
    grace: Duration
    misfire_grace: Duration
    lease: Duration
    output_cap: int | str
    max_result: int | str
    http_allow: str | Sequence[str]
    notify_allow: str | Sequence[str]
    public_url: str
    agents: Mapping[str, Any]
    agent_prompt: str
    sessions: SessionDefaults | Mapping[str, Any]
    telegram: TelegramSettings | Mapping[str, Any]
    host: str
    port: int
    hosts: str | Sequence[str]
    metrics: str | int
    login_lifetime: Duration
    login_idle_timeout: Duration
    tls_cert: str
    tls_key: str
    trusted_proxies: str | Sequence[str]
    log_level: LogLevel
    log_format: LogFormat
