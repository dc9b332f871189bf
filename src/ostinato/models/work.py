"""What to do: the kinds of work, and their JSON form.

A stored work that this program cannot read becomes `Unreadable`, which keeps its text and says why.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar

import msgspec

from ostinato.errors import InvalidInput, NotLoadable

__all__ = [
    "PAYLOADS_END",
    "Function",
    "Unreadable",
    "Work",
    "load_work",
    "payload_text",
    "payload_work",
    "read_work",
    "work_json",
    "work_text",
]


@dataclass(frozen=True, slots=True)
class Function:
    """Call the task registered by this name with these arguments."""

    kind: ClassVar[str] = "function"
    task: str
    args: list[Any] = field(default_factory=list)
    kwargs: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Stored work that this program cannot read: kept as it is, shown as broken, never executed."""

    text: str
    reason: str
    kind: str = "unreadable"


Work = Function
"""What a run can execute."""

_KINDS: dict[str, type[Work]] = {Function.kind: Function}
_decode_any = msgspec.json.Decoder().decode
_DECODERS = {kind: msgspec.json.Decoder(cls).decode for kind, cls in _KINDS.items()}


class _Kind(msgspec.Struct):
    kind: str


_decode_kind = msgspec.json.Decoder(_Kind).decode


def work_text(work: Work) -> str:
    """The JSON text that is stored. Arguments that are not JSON are an InvalidInput."""
    if not work.args and not work.kwargs:
        return _plain_text(work.task)
    return _text(work)


@lru_cache(maxsize=1024)
def _plain_text(task: str) -> str:
    return _text(Function(task))


def _text(work: Work) -> str:
    try:
        fields = msgspec.json.encode(work)
        _check_finite([work.args, work.kwargs], fields)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInput(
            f"the arguments of task {work.task!r} are not JSON: {error}",
            field="args",
            hint="pass text, numbers, booleans, None, lists and dicts, and load other things inside the task",
        ) from error
    return f'{{"kind":"{work.kind}",' + fields[1:].decode()


def _check_finite(value: Any, encoded: bytes) -> None:
    """Refuse NaN and infinity, which JSON does not have: msgspec writes null for them."""
    if b"null" in encoded:
        _walk(value)


def _walk(value: Any) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} is not a number in JSON")
    if isinstance(value, Mapping):
        value = value.values()
    elif not isinstance(value, (list, tuple, set, frozenset)):
        return
    for item in value:
        _walk(item)


PAYLOADS_END = "]}}"
"""How the text of `payload_work` ends: another payload goes in front of it, after a comma."""


def payload_work(task: str, payload: str) -> str:
    """The stored text of a call with `payloads`, a list that holds this JSON and can be added to."""
    empty = _text(Function(task, kwargs={"payloads": []}))
    return empty.removesuffix(PAYLOADS_END) + payload + PAYLOADS_END


def payload_text(payload: Any) -> str:
    """A payload as JSON; InvalidInput if it is not."""
    try:
        encoded = msgspec.json.encode(payload)
        _check_finite(payload, encoded)
        return encoded.decode()
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInput(
            f"the payload is not JSON: {error}",
            field="payload",
            hint="send text, numbers, booleans, None, lists and dicts",
        ) from error


def read_work(text: str, kind: str | None = None) -> Work:
    """The work of a stored text; NotLoadable when its kind is unknown or its fields are wrong."""
    if kind is None:
        try:
            kind = _decode_kind(text).kind
        except msgspec.DecodeError as error:
            raise NotLoadable(f"its work is not readable: {error}") from error
    decode = _DECODERS.get(kind)
    if decode is None:
        known = ", ".join(sorted(_DECODERS))
        raise NotLoadable(f"its work is of the unknown kind {kind!r}; this version knows {known}: upgrade Ostinato")
    try:
        return decode(text)
    except msgspec.DecodeError as error:
        raise NotLoadable(f"its {kind} work is not readable: {error}") from error


def load_work(text: str) -> Work | Unreadable:
    """The work of a stored text, or what is wrong with it."""
    try:
        return read_work(text)
    except NotLoadable as error:
        return Unreadable(text, str(error))


def work_json(work: Work | Unreadable) -> dict[str, Any]:
    """The work as scripts see it: `{"kind": …, …}`."""
    if isinstance(work, Unreadable):
        return {"kind": work.kind, "text": work.text, "reason": work.reason}
    result: dict[str, Any] = _decode_any(work_text(work))
    return result
