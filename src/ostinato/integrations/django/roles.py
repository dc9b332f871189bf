"""What users of Django may see and do: the same on the page, which `asgi.py` mounts, and in the admin."""

from __future__ import annotations

from typing import Any, TypeVar

from ostinato.api.redaction import shown, shown_to
from ostinato.models.access import Login, Role, RoleName

__all__ = ["as_shown", "role_of"]

T = TypeVar("T")


OPERATE = "ostinato.operate"
"""The permission of those who may act on schedules and runs."""


def role_of(user: Any) -> RoleName | None:
    """The role of somebody who is logged in; None for who is not of the staff."""
    if not (user.is_active and user.is_staff):
        return None
    return "admin" if user.is_superuser else "operator" if user.has_perm(OPERATE) else "viewer"


def as_shown(answer: T, user: Any) -> T:
    """An answer as this user would see it on the page."""
    login = Login(user.get_username(), Role(role_of(user) or "viewer"), None, None, None)
    with shown_to(login):
        return shown(answer)
