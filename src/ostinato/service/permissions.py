"""What needs which role, whoever asks through whichever door."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ostinato.errors import NotAllowed
from ostinato.models.access import Role
from ostinato.models.installed_kinds import kind_of
from ostinato.models.schedule import Schedule
from ostinato.models.work import Unreadable, Work

__all__ = ["admins_part", "admins_part_of", "require_role", "secret_ping_url", "secret_texts"]

# Wider than what the engine reads as a reference: what is not one today must not become one unseen.
_REFERENCE = re.compile(r"(?<![A-Za-z0-9_])(env|file):")


def require_role(who: str, role: Role, needed: Role, deed: str = "this") -> None:
    """NotAllowed, unless this role or a higher one is there."""
    if not role.covers(needed):
        raise NotAllowed(f"{deed} needs the role {needed}, and {who!r} has the role {role}")


def admins_part_of(schedule: Schedule) -> str | None:
    """What of this schedule is an admin's; None if nothing is."""
    gate = "a gate" if schedule.policy.gate is not None else None
    return admins_part(schedule.work) or gate or secret_ping_url(schedule.policy.ping_url)


def secret_ping_url(url: str | None) -> str | None:
    """What of this ping_url is an admin's: that it reads a secret."""
    if url is None or _REFERENCE.search(url) is None:
        return None
    return "a ping_url that reads a secret of the machine (env:, file:)"


def admins_part(work: Work | Unreadable) -> str | None:
    """What of this work is an admin's: commands, and what sends secrets away."""
    if isinstance(work, Unreadable):
        # It may be a command that another version, or another node, can read.
        return "work that cannot be read"
    kind = kind_of(work)
    if kind.needs_admin:
        return f"{work.kind} work"
    for one in kind.fields:
        if one.about.secret and any(_REFERENCE.search(text) for text in secret_texts(getattr(work, one.name)).values()):
            noun = one.label.lower().removesuffix("s")
            return f"a {noun} that reads a secret of the machine (env:, file:)"
    return None


def secret_texts(value: Mapping[str, str] | str | None) -> Mapping[str, str]:
    """The texts in a secret field, by the name in it, or by none."""
    return value if isinstance(value, Mapping) else {} if value is None else {"": value}
