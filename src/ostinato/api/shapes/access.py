"""Who may, as REST shows and takes it: who asks, logins, tokens, and the audit log."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from ostinato.api.shapes.base import Answer, Asked, Moment, Sought, Text, Time, Zoned

__all__ = [
    "AuditEntry",
    "AuditPage",
    "AuditQuery",
    "Login",
    "LoginList",
    "MadeLogin",
    "MadeToken",
    "Me",
    "NewLogin",
    "NewToken",
    "Token",
    "TokenList",
]

Role = Literal["viewer", "operator", "admin"]


class NewLogin(Asked):
    """Either of the two."""

    code: Annotated[Text | None, Field(max_length=200, description="The one-time code of a login link.")] = None
    token: Annotated[Text | None, Field(max_length=200, description="A token.")] = None


class Me(Answer):
    """Who asks."""

    who: str
    role: Role
    version: Annotated[str, Field(description="Of the server.")]
    zone: Annotated[str, Field(description="The zone of the server's settings.")]


class MadeLogin(Me):
    """Who has logged in, with the second secret beside the cookie, which is shown this once."""

    origin_key: Annotated[str, Field(description="The page sends it with every request, as X-Origin-Key.")]


class Login(Answer):
    """A browser that is logged in."""

    id: int
    who: str
    role: Role
    token: Annotated[str | None, Field(description="The token that it was made with, if it was one.")]
    created_at: Time
    used_at: Time | None
    expires_at: Time
    current: Annotated[bool, Field(description="Whether it is the one that asks.")]


class LoginList(Zoned):
    """Every login, the newest first."""

    items: list[Login]


class Token(Answer):
    """A token without its secret."""

    id: int
    name: str
    role: Role
    owner: str
    created_at: Time
    used_at: Time | None
    expires_at: Time | None


class MadeToken(Token, Zoned):
    """A token with its secret, which is shown this once."""

    token: str


class TokenList(Zoned):
    """Every token."""

    items: list[Token]


class NewToken(Asked):
    """A token to make."""

    name: Annotated[Text, Field(min_length=1, max_length=200)]
    role: Role
    expires: Annotated[Text | None, Field(description="After how long, such as 90d; never if left out.")] = None


class AuditEntry(Answer):
    """One write of a person or an agent."""

    id: int
    at: Time
    who: str
    door: str
    address: str | None
    verb: str
    object: str
    detail: dict[str, Any]


class AuditPage(Zoned):
    """A part of the log, the newest first; `next` is the cursor of the following one."""

    items: list[AuditEntry]
    next: str | None


class AuditQuery(Sought):
    """Which entries to list, the newest first."""

    who: Annotated[Text | None, Field(max_length=200)] = None
    door: Annotated[Text | None, Field(max_length=200, description="cli, api, page, …")] = None
    verb: Annotated[Text | None, Field(max_length=200, description="Such as schedule.add.")] = None
    object: Annotated[Text | None, Field(max_length=200, description="What it was done to: a name or an id.")] = None
    from_: Annotated[Moment | None, Field(alias="from", description="At this time or after it.")] = None
    until: Annotated[Moment | None, Field(description="At this time or before it.")] = None
    cursor: Annotated[Text | None, Field(description="`next` of the page before.")] = None
    limit: Annotated[int, Field(ge=1, le=500)] = 50
