"""Who may: roles, tokens, logins, and the log of what people and agents did. Secrets are known by their hash alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Literal

from ostinato.clock import Micros
from ostinato.models.policy import check_choice, check_key

__all__ = [
    "Actor",
    "Answer",
    "AuditEntry",
    "AuditFilter",
    "Browser",
    "Identity",
    "Login",
    "LoginLimits",
    "NewLogin",
    "NewToken",
    "Role",
    "RoleName",
    "Token",
]


class Role(StrEnum):
    """What a user may do; each role includes the one before it."""

    VIEWER = "viewer"
    """Read everything but tokens and the audit log."""
    OPERATOR = "operator"
    """Act on schedules, runs, lanes, sessions and nodes."""
    ADMIN = "admin"
    """Create shell and agent work, gates, projects and tokens, and read the audit log."""

    def covers(self, needed: Role) -> bool:
        """Whether whoever has this role may do what needs that one."""
        order = list(Role)
        return order.index(self) >= order.index(needed)


RoleName = Literal["viewer", "operator", "admin"]


@dataclass(frozen=True, slots=True)
class Identity:
    """Somebody whom another app has logged in, and what they may do here: the answer of its callback `who`."""

    name: str
    """As the audit log shows it."""
    role: Role | RoleName = Role.VIEWER

    def __post_init__(self) -> None:
        check_key(self.name, "name", "give the name of the user")
        object.__setattr__(self, "role", check_choice(Role, "role", self.role))


@dataclass(frozen=True, slots=True)
class Token:
    """A token for scripts, without its secret."""

    id: int
    name: str
    role: Role
    owner: str
    created_at: datetime
    used_at: datetime | None
    expires_at: datetime | None


@dataclass(frozen=True, slots=True)
class NewToken:
    """A token to store."""

    name: str
    role: Role
    owner: str
    hash: str
    expires_at: Micros | None


@dataclass(frozen=True, slots=True)
class NewLogin:
    """A browser's login, or a code that can be exchanged for one once."""

    hash: str
    who: str
    role: Role
    expires_at: Micros
    token_id: int | None = None
    """The token that it was made with: it ends with that."""
    origin_hash: str = ""
    """Of the second secret, which the page keeps for its own origin; a code has none."""


@dataclass(frozen=True, slots=True)
class LoginLimits:
    """How long a browser stays logged in."""

    lifetime: timedelta
    """From its login on, whatever it does."""
    idle_timeout: timedelta
    """Without a request or an open page."""


@dataclass(frozen=True, slots=True)
class Login:
    """Somebody who proved who they are."""

    who: str
    role: Role
    token_id: int | None
    used_at: datetime | None
    expires_at: datetime | None


@dataclass(frozen=True, slots=True)
class Browser:
    """A browser that is logged in, without the secret of its cookie."""

    id: int
    who: str
    role: Role
    token: str | None
    """The name of the token that it was made with; removing the token ends it."""
    created_at: datetime
    used_at: datetime | None
    expires_at: datetime
    current: bool
    """Whether it is the login of this request."""


@dataclass(frozen=True, slots=True)
class Actor:
    """Who does something, and through which door."""

    who: str
    door: str
    """cli, api, page, mcp, telegram; engine for what a node does by itself."""
    address: str | None = None


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One write of a person or an agent."""

    id: int
    at: datetime
    who: str
    door: str
    address: str | None
    verb: str
    object: str
    detail: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """Which entries to list, newest first."""

    who: str | None = None
    door: str | None = None
    verb: str | None = None
    object: str | None = None
    since: Micros | None = None
    until: Micros | None = None
    before_id: int | None = None
    limit: int = 50


@dataclass(frozen=True, slots=True)
class Answer:
    """The stored answer to a request with an Idempotency-Key; no status yet: it is under way."""

    fingerprint: str
    """Of the method, the path, the conditions and the body, and of whose role it is."""
    status: int | None = None
    headers: Mapping[str, str] | None = None
    body: bytes = b""
