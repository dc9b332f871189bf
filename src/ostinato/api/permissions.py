"""What only an admin may put into a schedule or a run: what runs commands, and what sends secrets away.

And what an operator may change of a schedule that has such a thing: when it runs, and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence

from ostinato.api.access import require
from ostinato.api.redaction import HIDDEN
from ostinato.api.shapes.policy import NewPolicy
from ostinato.errors import InvalidInput
from ostinato.models.access import Login, Role
from ostinato.models.installed_kinds import kind_of
from ostinato.models.schedule import Schedule
from ostinato.models.work import Work
from ostinato.service.permissions import admins_part, admins_part_of, secret_ping_url, secret_texts

__all__ = ["check_changes", "check_permissions", "check_replaced", "check_reverted"]

_OPERATORS = frozenset({"timing", "zone", "note", "enabled", "policy"})
_OPERATORS_POLICIES = frozenset({"catch_up", "catch_up_window", "catch_up_cap", "max_age", "priority"})
"""When it runs, and what becomes of due times that were missed. Closed lists: what is new is an admin's until it is put
here. The rest says what runs, how often again, how much at once, what it must pass, and what is kept and told of it.
"""


def check_permissions(login: Login, work: Work | None, policy: NewPolicy | None, field: str = "work") -> None:
    """NotAllowed, unless whoever gives this work and policy may. What was not shown to them cannot be given back; it is
    told by the name of the field."""
    deed = None if work is None else admins_part(work)
    if deed is not None:
        require(login, Role.ADMIN, deed)
    if policy is not None and "gate" in policy.model_fields_set:
        require(login, Role.ADMIN, "a gate")
    if policy is not None and (deed := secret_ping_url(getattr(policy, "ping_url", None))) is not None:
        require(login, Role.ADMIN, deed)
    _check_shown(work, field)


def check_replaced(login: Login, current: Schedule) -> None:
    """NotAllowed, unless whoever puts another schedule in the place of this one may."""
    deed = admins_part_of(current)
    if deed is not None:
        require(login, Role.ADMIN, f"replacing a schedule with {deed}")


def check_changes(login: Login, current: Schedule, given: set[str], policy: NewPolicy | None) -> None:
    """NotAllowed, unless whoever changes these fields of this schedule may. When it runs stays an operator's."""
    deed = admins_part_of(current)
    if deed is None:
        return
    policies = set() if policy is None else policy.model_fields_set - _OPERATORS_POLICIES
    for field in sorted((given - _OPERATORS) | policies):
        require(login, Role.ADMIN, f"changing the {field} of a schedule with {deed}")


def check_reverted(login: Login, current: Schedule, fields: Sequence[str] | None) -> None:
    """NotAllowed, unless whoever gives these fields of this schedule back to its code may: all that people changed, if
    none is named."""
    wanted = {field for field in current.overrides if fields is None or field in fields}
    deed = admins_part_of(current)
    for field in sorted(
        wanted - _OPERATORS - _OPERATORS_POLICIES if deed is not None else wanted & {"gate", "ping_url"}
    ):
        require(login, Role.ADMIN, f"giving back the {field} of schedule {current.name!r}")


def _check_shown(work: Work | None, field: str) -> None:
    """The stars of a hidden value would be stored in its place."""
    for one in () if work is None else kind_of(work).fields:
        for name, value in secret_texts(getattr(work, one.name)).items() if one.about.secret else ():
            if value == HIDDEN:
                raise InvalidInput(
                    f"{name or one.name} is {HIDDEN}, which stands for a value that was not shown",
                    field=f"{field}.{one.name}.{name}".removesuffix("."),
                    hint=f"give the value again, or leave out {field} to keep it as it is",
                )
