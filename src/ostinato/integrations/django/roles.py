"""What users of Django may see and do: the same on the page, which `asgi.py` mounts, and in the admin."""

from __future__ import annotations

from typing import Any

from ostinato.models.access import RoleName

__all__ = ["role_of"]

OPERATE = "ostinato.operate"
"""The permission of those who may act on schedules and runs."""


def role_of(user: Any) -> RoleName | None:
    """The role of somebody who is logged in; None for who is not of the staff."""
    if not (user.is_active and user.is_staff):
        return None
    return "admin" if user.is_superuser else "operator" if user.has_perm(OPERATE) else "viewer"
