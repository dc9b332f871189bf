"""The audit log: who did what, through which door. A door says who acts, the verbs of the services note what they did.

Code that calls the Python API has no actor, and is not noted.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import fields, is_dataclass, replace
from datetime import datetime, timedelta
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar
from urllib.parse import urlsplit

import msgspec

from ostinato.clock import Clock, to_micros
from ostinato.durations import duration_text
from ostinato.errors import OstinatoError
from ostinato.logs import get_logger
from ostinato.models.access import Actor, AuditEntry, AuditFilter
from ostinato.models.installed_kinds import secret_fields
from ostinato.models.policy_fields import SECRET_POLICIES
from ostinato.models.work_kinds import Work
from ostinato.service.pages import Page, check_limit, cursor_text, read_cursor
from ostinato.stores.base import Store

__all__ = ["AuditService", "acting", "asked_by", "audited", "changed_by", "current_actor", "is_program", "note"]

log = get_logger("ostinato")

P = ParamSpec("P")
T = TypeVar("T")

_LONGEST_TEXT = 200
_LONGEST_LIST = 20
_DEEPEST = 4
_LARGEST = 4_000
"""Characters of a whole detail."""

_ONLY_NAMES = {"env", "headers"}
"""Of these the values may be secrets: the log has their names."""
_ONLY_SIZE = {"body", "json"}
"""What HTTP work sends may be one as a whole."""

_CONDITIONS = {"version", "stays_off"}
"""Under which a verb is done: it says nothing about what was done."""

_actor: ContextVar[Actor | None] = ContextVar("ostinato_actor", default=None)
_behalf: ContextVar[Actor | None] = ContextVar("ostinato_behalf", default=None)
"""For whom a verb is carried out that is noted at its end."""
_PROGRAM = "a program"
"""Who changes something by the Python API."""


class _Verbs(Protocol):
    """A service: it holds the store and the clock."""

    @property
    def _store(self) -> Store: ...

    @property
    def _clock(self) -> Clock: ...


S = TypeVar("S", bound=_Verbs)


def current_actor() -> Actor | None:
    """Who acts here; None if it is code."""
    return _actor.get()


def changed_by() -> str:
    """Who changes what is being changed here, also inside of a verb that is noted at its end."""
    actor = _actor.get() or _behalf.get()
    return _PROGRAM if actor is None else actor.who


def asked_by() -> str | None:
    """The same for what a run says of its origin: None if it is a program."""
    return None if is_program() else changed_by()


def is_program() -> bool:
    """Whether it is code that does this, by the Python API."""
    return _actor.get() is None and _behalf.get() is None


@contextmanager
def acting(actor: Actor | None) -> Iterator[None]:
    """What is done in here is done by this actor."""
    before = _actor.set(actor)
    try:
        yield
    finally:
        _actor.reset(before)


def audited(
    verb: str, *, about: Callable[[dict[str, Any], Any], object] | None = None, answers: str | None = None
) -> Callable[
    [Callable[Concatenate[S, P], Coroutine[Any, Any, T]]], Callable[Concatenate[S, P], Coroutine[Any, Any, T]]
]:
    """Note this verb of a service when it has succeeded. What it calls in turn is not noted again.

    It is about its first argument, or what `about` makes of its arguments and its answer (None: nothing was done); the
    detail has the other arguments, and the answer (its id, if it has one) under the name `answers`.
    """

    def decorate(
        method: Callable[Concatenate[S, P], Coroutine[Any, Any, T]],
    ) -> Callable[Concatenate[S, P], Coroutine[Any, Any, T]]:
        signature = inspect.signature(method)
        first = [*signature.parameters, ""][1]

        @wraps(method)
        async def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
            actor = _actor.get()
            if actor is None:
                return await method(self, *args, **kwargs)
            behalf = _behalf.set(actor)
            try:
                with acting(None):
                    answer = await method(self, *args, **kwargs)
            finally:
                _behalf.reset(behalf)
            given = _given(signature, self, args, kwargs)
            subject = given.pop(first) if about is None else about(given, answer)
            if answers is not None:
                given[answers] = getattr(answer, "id", answer)
            if subject is not None:
                await note(self._store, self._clock, actor, verb, str(subject), given)
            return answer

        return call

    return decorate


def _given(
    signature: inspect.Signature, service: object, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """The arguments by their names, those of `**policy` among them; without the service, what is None, and
    conditions."""
    bound = signature.bind(service, *args, **kwargs)
    given: dict[str, Any] = {}
    for name, value in list(bound.arguments.items())[1:]:
        if signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
            given.update(value)
        elif value is not None and name not in _CONDITIONS:
            given[name] = value
    return given


async def note(
    store: Store, clock: Clock, actor: Actor, verb: str, object: str, detail: Mapping[str, Any] | None = None
) -> None:
    """Append an entry. What was done is done: if the log cannot be written, the program's log has the entry."""
    text = _detail_text(detail or {})
    try:
        await store.access.note_audit(actor, verb, object[:_LONGEST_TEXT], text, clock.now())
    except OstinatoError as error:
        log.error("audit: %s of %r by %s (%s) is not in the log: %s", verb, object, actor.who, actor.door, error)


def _detail_text(detail: Mapping[str, Any]) -> str:
    small = {name: _small(name, value) for name, value in detail.items()}
    text = msgspec.json.encode(small).decode()
    while len(text) > _LARGEST:
        # The longest goes first: what is left says the most. Of work that is one of its fields, not its command.
        place = small
        longest = _longest(place)
        if isinstance(place[longest], dict) and len(place[longest]) > 1:
            place, longest = place[longest], _longest(place[longest])
        place[longest] = "…"
        text = msgspec.json.encode(small).decode()
    return text


def _longest(of: Mapping[str, Any]) -> str:
    return max(of, key=lambda name: len(msgspec.json.encode(of[name])))


def _small(name: str, value: Any, depth: int = 0) -> Any:
    """What may stand in the log: short texts, no values that may be secrets."""
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, str):
        if name in SECRET_POLICIES:
            return "***"
        return _size(value) if name in _ONLY_SIZE else _cut(_bare_url(value) if name == "url" else value)
    if isinstance(value, timedelta):
        return duration_text(value)
    if isinstance(value, (datetime, Path)):
        return str(value)
    if depth >= _DEEPEST:
        return "…"
    if name in _ONLY_SIZE:
        return _size(value)
    if isinstance(value, Mapping):
        if name in _ONLY_NAMES:
            return sorted(_cut(str(key)) for key in value)[:_LONGEST_LIST]
        items = list(value.items())[:_LONGEST_LIST]
        return {_cut(str(key)): _small(str(key), inner, depth + 1) for key, inner in items}
    if is_dataclass(value) and not isinstance(value, type):
        found = {field.name: getattr(value, field.name) for field in fields(value)}
        if isinstance(value, Work):
            found |= {name: _without_secrets(found[name]) for name in secret_fields(value.kind)}
        kind = {"kind": value.kind} if hasattr(value, "kind") else {}
        return kind | {
            key: _small(key, inner, depth + 1) for key, inner in found.items() if inner not in (None, {}, [])
        }
    if isinstance(value, Sequence):
        return _small_list(name, value, depth)
    return _cut(str(getattr(value, "name", value)))


def _without_secrets(value: Mapping[str, str] | str | None) -> Any:
    """Of variables and headers their names."""
    return sorted(value) if isinstance(value, Mapping) else value and "***"


def _small_list(name: str, values: Sequence[Any], depth: int) -> list[Any]:
    """As many of them as a long text may have characters; what is left out is known by the hash of the whole."""
    small: list[Any] = []
    room = _LONGEST_TEXT
    for value in values[:_LONGEST_LIST]:
        room -= len(value) if isinstance(value, str) else 0
        if room < 0 and small:
            break
        small.append(_small(name, value, depth + 1))
    if len(small) < len(values) and all(isinstance(value, str) for value in values):
        small.append(f"… ({_hashed(msgspec.json.encode(values).decode())})")
    return small


def _cut(text: str) -> str:
    """A long text by its beginning, and by the hash of the whole: whether it is the one that is there can be shown."""
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}… ({_hashed(text)})"


def _hashed(text: str) -> str:
    return f"sha256 {hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}"


def _size(value: Any) -> str:
    """Of what may hold secrets. No hash of it: what is short could be guessed."""
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return f"… ({len(text)} characters)"


def _bare_url(url: str) -> str:
    """Without the user, the password and the query, which may hold secrets."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "…"
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}" + ("?…" if parts.query else "")


class AuditService:
    """Reads the log, and notes in it who was turned away."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def note_denial(self, actor: Actor, status: int, asked: Mapping[str, int]) -> None:
        """Requests of one actor were refused; `asked` says what for, and how often each."""
        first, *others = asked
        detail: dict[str, Any] = {"status": status, "count": sum(asked.values())}
        if others:
            detail["asked"] = asked
        object = f"{first} and others" if others else first
        await note(self._store, self._clock, actor, "denied", object, detail)

    async def page(
        self,
        *,
        who: str | None = None,
        door: str | None = None,
        verb: str | None = None,
        object: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> Page[AuditEntry]:
        """Entries, the newest first, page by page."""
        wanted = AuditFilter(
            who=who,
            door=door,
            verb=verb,
            object=object,
            since=None if since is None else to_micros(since),
            until=None if until is None else to_micros(until),
        )
        before = None if cursor is None else read_cursor(cursor, wanted, int)[0]
        found = await self._store.access.list_audit(replace(wanted, before_id=before, limit=check_limit(limit) + 1))
        more = cursor_text([found[limit - 1].id], wanted) if len(found) > limit else None
        return Page(found[:limit], more)
