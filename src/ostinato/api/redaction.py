"""Answers as whoever asks may see them: values of variables and headers may be secrets, and are for an admin alone.

What HTTP work sends (its query and body) is for those who may make such work, and so is why a node's service failed,
where a channel leads, and why a message could not be sent there.
`access.py` says who asks; `answers.py` lets every answer go through here, whichever route gives it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import cache
from typing import Any, TypeVar, get_args, get_type_hints

from msgspec import Struct

from ostinato.models.access import Login, Role
from ostinato.models.installed_kinds import find_kind
from ostinato.models.notification import Delivery, DeliveryState
from ostinato.models.project import Project
from ostinato.models.work_kinds import KindField, Shown, WorkKind, line_of
from ostinato.service.answers import AgentWork, HttpWork, Node, Run, ShellWork, UnreadableWork
from ostinato.service.notifications import ChannelStatus

__all__ = ["HIDDEN", "may_be_hidden", "shown", "shown_to"]

HIDDEN = "***"
"""Stands where a value is not shown."""

# A reference is no secret: it says where one is. In a header the scheme may stand before it.
_REFERENCE = re.compile(r"([A-Za-z-]+ +)?(env|file):.+", re.DOTALL)

_TELLING = frozenset({ShellWork, AgentWork, HttpWork, UnreadableWork, Node, Project, ChannelStatus, Delivery})
"""What holds something to hide in itself."""

T = TypeVar("T")
_role: ContextVar[Role] = ContextVar("ostinato_role", default=Role.VIEWER)


@contextmanager
def shown_to(login: Login) -> Iterator[None]:
    """What is shown in here, this login sees."""
    before = _role.set(login.role)
    try:
        yield
    finally:
        _role.reset(before)


def shown(value: T) -> T:
    """An answer as whoever asks may see it. What was made for it may be changed; a model is not."""
    role = _role.get()
    return value if role.covers(Role.ADMIN) else _shown(value, role)


def _shown(value: Any, role: Role) -> Any:
    if isinstance(value, list | tuple):
        return [_shown(item, role) for item in value]
    if isinstance(value, Project):
        return replace(value, env=_names(value.env))
    if isinstance(value, ChannelStatus):
        return value if role.covers(Role.OPERATOR) else replace(value, url=HIDDEN, error=_why(value.error))
    if isinstance(value, Delivery):
        # Why something was dropped are words of ours; of what was tried, those of a server.
        is_shown = role.covers(Role.OPERATOR) or value.state is DeliveryState.DROPPED
        return value if is_shown else replace(value, error=_why(value.error))
    if not isinstance(value, Struct):
        return value
    for name in _telling_fields(type(value)):
        setattr(value, name, _shown(getattr(value, name), role))
    is_operator = role.covers(Role.OPERATOR)
    if (kind := _kind_of(type(value))) is not None:
        _hide(value, kind, is_operator=is_operator)
    match value:
        case UnreadableWork():
            value.text = HIDDEN
        case Run(work=HttpWork(), result=dict(result)) if not is_operator:
            # The address that answered, with its query.
            value.result = result | {"url": _hidden_query(str(result.get("url", "")))}
        case Node() if not is_operator:
            value.services = {name: _without_error(service) for name, service in value.services.items()}
    return value


@cache
def _kind_of(answer: type[Struct]) -> WorkKind | None:
    """The kind of work that an answer tells, if it is one."""
    config = answer.__struct_config__
    return find_kind(str(config.tag)) if config.tag_field == "kind" else None


def _hide(value: Any, kind: WorkKind, *, is_operator: bool) -> None:
    """What the description of its kind keeps from who asks."""
    given = {one.name: getattr(value, one.name) for one in kind.fields}
    seen = given | {one.name: _without_secrets(given[one.name]) for one in kind.fields if one.about.secret}
    if hasattr(value, "line"):
        value.line = _line(value.line, kind, given, seen) if is_operator or kind.is_public else HIDDEN
    for one in kind.fields:
        told = seen[one.name]
        if not is_operator and may_be_hidden(one) and told is not None:
            is_address = one.about.shown is Shown.WITHOUT_QUERY and isinstance(told, str)
            told = _hidden_query(told) if is_address else HIDDEN
        setattr(value, one.name, told)


def may_be_hidden(one: KindField) -> bool:
    """Whether the stars may stand in the place of a whole field of work, whatever its type."""
    return not one.about.secret and one.about.shown is not Shown.VIEWERS


def _without_secrets(given: Mapping[str, str] | str | None) -> Any:
    if given is None:
        return None
    return _names(given) if isinstance(given, Mapping) else _names({"": given})[""]


def _line(line: str, kind: WorkKind, given: Mapping[str, Any], seen: Mapping[str, Any]) -> str:
    """The line of the same work without its secrets. A class may write it as it likes, so it is asked again: what it is
    not given, it cannot show."""
    if seen == given:
        return line
    try:
        line = line_of(kind.value(**seen))
    except Exception:
        return HIDDEN  # the stars are not what its class takes
    # Another field may repeat a secret. The longest goes first: it may begin as a shorter one does.
    for text in sorted(_literals(given, seen), key=len, reverse=True):
        line = line.replace(text, HIDDEN)
    return line


def _literals(given: Mapping[str, Any], seen: Mapping[str, Any]) -> Iterator[str]:
    """The texts in the place of which stars are seen."""
    for name, value in given.items():
        if isinstance(value, Mapping):
            yield from _literals(value, seen[name])
        elif value and value != seen[name]:
            yield value


@cache
def _telling_fields(kind: type[Struct]) -> tuple[str, ...]:
    """Those that hold something of which a part may be hidden: another answer, or a list of some."""
    return tuple(name for name, hint in get_type_hints(kind).items() if _may_tell(hint))


def _may_tell(hint: Any) -> bool:
    if isinstance(hint, TypeVar) or hint in _TELLING:
        return True
    is_answer = isinstance(hint, type) and issubclass(hint, Struct)
    return any(map(_may_tell, get_args(hint))) or (is_answer and bool(_telling_fields(hint)))


def _why(error: str | None) -> str | None:
    """It may name the host that a message goes to."""
    return None if error is None else "operators see why"


def _without_error(service: Mapping[str, Any]) -> dict[str, Any]:
    """What the database or another server said may name hosts and users."""
    hidden = {"error": "see the log of the node" if service.get("error") else None}
    return {**service, **hidden, **({} if service.get("well", True) else {"status": "see the log of the node"})}


def _hidden_query(url: str) -> str:
    """An address whose query has its names alone; a password in it is not shown either."""
    place, question, query = url.partition("?")
    scheme, separator, rest = place.partition("://")
    host, slash, path = rest.partition("/")
    user, at, name = host.rpartition("@")
    place = f"{scheme}{separator}{HIDDEN if user else ''}{at}{name}{slash}{path}"
    pairs = [part.partition("=") for part in query.partition("#")[0].split("&")]
    shown = "&".join(f"{key}={HIDDEN}" if equals else HIDDEN for key, equals, _ in pairs)
    return f"{place}?{shown}" if question else place.partition("#")[0]


def _names(values: Mapping[str, str]) -> dict[str, str]:
    return {name: value if _REFERENCE.fullmatch(value) else HIDDEN for name, value in values.items()}
