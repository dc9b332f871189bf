"""Who may, as REST shows and takes it: who asks, logins, tokens, and the audit log."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from ostinato.api.shapes.base import Moment, PagedQuery, RequestBody, Text

__all__ = ["AuditQuery", "NewLogin", "NewToken"]

Role = Literal["viewer", "operator", "admin"]


class NewLogin(RequestBody):
    """A login: give either of the two."""

    code: Annotated[Text | None, Field(max_length=200, description="The one-time code of a login link.")] = None
    token: Annotated[Text | None, Field(max_length=200, description="A token.")] = None


class NewToken(RequestBody):
    """A token to make."""

    name: Annotated[Text, Field(min_length=1, max_length=200)]
    role: Role
    expires: Annotated[Text | None, Field(description="When it expires, such as 90d; never if left out.")] = None


class AuditQuery(PagedQuery):
    """Which entries to list, the newest first."""

    who: Annotated[Text | None, Field(max_length=200)] = None
    door: Annotated[Text | None, Field(max_length=200, description="cli, api, page, …")] = None
    verb: Annotated[Text | None, Field(max_length=200, description="For example schedule.add.")] = None
    object: Annotated[Text | None, Field(max_length=200, description="What it was done to: a name or an id.")] = None
    from_: Annotated[Moment | None, Field(alias="from", description="At this time or after it.")] = None
    until: Annotated[Moment | None, Field(description="At this time or before it.")] = None
