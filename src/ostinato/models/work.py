"""The JSON form of work: what is stored, what is read back, and what scripts see.

`work_values.py` has our own kinds, `installed_kinds.py` finds those of packages. A stored work that this program cannot
read becomes `Unreadable`, which keeps its text and says why.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, replace
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from ostinato.errors import InvalidInput, NotLoadable
from ostinato.logs import one_line
from ostinato.models.installed_kinds import added_kinds, broken_kinds, default_policy, installed_kinds
from ostinato.models.nesting import MOST_SHOWN_DEPTH, check_depth, is_deeper, too_deep
from ostinato.models.work_kinds import ProcessWork, Work, check_task, is_added
from ostinato.models.work_values import OUR_KINDS, Agent, CheckIn, Function, Http, Shell, Unreadable

__all__ = [
    "Agent",
    "CheckIn",
    "Function",
    "Http",
    "JoinableWork",
    "NotFinite",
    "ProcessWork",
    "Shell",
    "Unreadable",
    "Work",
    "answer_text",
    "check_finite",
    "default_policy",
    "load_work",
    "payload_text",
    "payloads_work",
    "prompt_work",
    "read_work",
    "why_not_by_hand",
    "work_json",
    "work_text",
]

_decode_any = msgspec.json.Decoder().decode
_DECODERS: dict[str, Callable[[str], Work]] = {kind.name: msgspec.json.Decoder(kind.value).decode for kind in OUR_KINDS}
"""By kind; those of packages are added when they are first met."""


class _Kind(msgspec.Struct):
    kind: str


_decode_kind = msgspec.json.Decoder(_Kind).decode


def work_text(work: Work) -> str:
    """The JSON text that is stored. What is not JSON in it is an InvalidInput."""
    if isinstance(work, Function) and not work.args and not work.kwargs:
        return _plain_text(work.task)
    return _text(work)


@lru_cache(maxsize=1024)
def _plain_text(task: str) -> str:
    return _text(Function(task))


def _text(work: Work) -> str:
    is_call = isinstance(work, Function)
    if isinstance(work, Function):
        check_task(work.task, "give the name of a task, such as mail")
    try:
        said = work if is_call else _said(work)
        encoded = msgspec.json.encode(said)
        if is_deeper(encoded):
            raise too_deep(*_in_words(work))
        if b"null" in encoded:  # which is what msgspec writes for NaN and infinity: JSON has neither
            check_finite(_values(work) if is_call else said)
    except InvalidInput:
        raise
    except RecursionError as error:
        raise too_deep(*_in_words(work)) from error
    except (TypeError, ValueError, OverflowError) as error:
        what, field = _in_words(work)
        if isinstance(work, Function) and (wrong := _not_json(work)) is not None:
            what = f"{wrong} of task {work.task!r} is"
        raise InvalidInput(
            f"{what} not JSON: {error}",
            field=field,
            hint="pass text, numbers, booleans, None, lists and dicts, and load other things inside the task",
        ) from error
    text = f'{{"kind":"{work.kind}"' + ("" if encoded == b"{}" else ",") + encoded[1:].decode()
    if not is_call and work.kind in added_kinds():
        _check_reads_back(work, text)
    return text


def _in_words(work: Work) -> tuple[str, str]:
    """How an error about the JSON of a work begins, and which field it is about."""
    if isinstance(work, Function):
        return f"the arguments of task {work.task!r} are", "args"
    return f"this {work.kind} work is", "json" if isinstance(work, Http) else "work"


def _not_json(work: Function) -> str | None:
    """Which argument cannot be stored."""
    named = [*((f"argument {index}", value) for index, value in enumerate(work.args, 1))]
    named += [(f"argument {name!r}", value) for name, value in work.kwargs.items()]
    for name, value in named:
        try:
            msgspec.json.encode(value)
            check_finite(value)
        except (TypeError, ValueError, OverflowError):
            return name
    return None


def _check_reads_back(work: Work, text: str) -> None:
    """Our own kinds check what they are given; those of packages may not, and no node could read what was stored."""
    try:
        if read_work(text) == work:
            return
        why = "its stored form is read as another one"
    except NotLoadable as error:
        why = str(error)
    raise InvalidInput(f"this {work.kind} work cannot be stored: {why}", field="work", hint="give what its fields say")


def _values(work: Work) -> dict[str, Any]:
    return {each.name: getattr(work, each.name) for each in fields(work)}


def _said(work: Work) -> dict[str, Any]:
    """The fields of a work that say something."""
    defaults = {
        each.name: each.default_factory() if each.default_factory is not MISSING else each.default
        for each in fields(work)
    }
    return {name: value for name, value in _values(work).items() if value != defaults[name]}


class NotFinite(ValueError):
    """NaN or infinity, which JSON does not have."""


def check_finite(value: Any) -> None:
    """NotFinite if there is a number in it that JSON does not have."""
    if isinstance(value, float) and not math.isfinite(value):
        raise NotFinite(f"{value} is not a number in JSON")
    if isinstance(value, Mapping):
        value = value.values()
    elif not isinstance(value, (list, tuple, set, frozenset)):
        return
    for item in value:
        check_finite(item)


class JoinableWork(NamedTuple):
    """The work of a message, as text that the payloads of later messages can join."""

    head: str
    """What stands before the first payload. Only work of the same head can be joined."""
    payload: str
    between: str
    """What stands between two payloads."""
    end: str

    @property
    def text(self) -> str:
        """As it is stored, with its own payload alone."""
        return self.head + self.payload + self.end


_PAYLOADS_END = "]}}"


def payloads_work(task: str, payload: Any) -> JoinableWork:
    """A call with `payloads`: a list of what was sent."""
    empty = _text(Function(task, kwargs={"payloads": []}))
    return JoinableWork(empty.removesuffix(_PAYLOADS_END), payload_text(payload), ",", _PAYLOADS_END)


def prompt_work(agent: Agent, payload: Any) -> JoinableWork:
    """A prompt of what was sent, in paragraphs. What the agent has for a prompt itself goes with its system prompt: it
    is said of every message, and is none."""
    said = payload if isinstance(payload, str) else payload_text(payload)
    if not said.strip():
        raise InvalidInput("a message to an agent needs text", field="payload", hint="send what it is to do")
    standing = "\n\n".join(filter(None, (agent.system, agent.prompt))) or None
    # The prompt comes last, so that only the work of the very same agent begins as this does.
    head = _text(replace(agent, prompt="", system=standing)).removesuffix("}") + ',"prompt":"'
    return JoinableWork(head, payload_text(said)[1:-1], r"\n\n", '"}')


def payload_text(payload: Any) -> str:
    """A payload as JSON; InvalidInput if it is not."""
    try:
        encoded = msgspec.json.encode(payload)
        check_depth(encoded, "the payload is", "payload")
        if b"null" in encoded:
            check_finite(payload)
        return encoded.decode()
    except InvalidInput:
        raise
    except RecursionError as error:
        raise too_deep("the payload is", "payload") from error
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
        except RecursionError:
            raise NotLoadable("its work is nested too deep") from None
        except msgspec.DecodeError as error:
            raise NotLoadable(f"its work is not readable: {error}") from error
    decode = _DECODERS.get(kind) or _decoder(kind)
    try:
        return decode(text)
    except RecursionError:
        raise NotLoadable(f"its {kind} work is nested too deep") from None
    except msgspec.DecodeError as error:
        raise NotLoadable(f"its {kind} work is not readable: {error}") from error
    except Exception as error:  # the class of a package may raise anything: its row must not be hidden for that
        raise NotLoadable(f"its {kind} work cannot be read: {one_line(error)}") from error


def _unknown(kind: str) -> NotLoadable:
    if kind in broken_kinds():
        return NotLoadable(f"its work is of the kind {kind!r}, whose package cannot be loaded: {broken_kinds()[kind]}")
    known = ", ".join(sorted(installed_kinds()))
    return NotLoadable(
        f"its work is of the unknown kind {kind!r}; this version knows {known}: upgrade Ostinato, or install the "
        "package that adds it"
    )


def _decoder(kind: str) -> Callable[[str], Work]:
    """Of a kind that a package adds."""
    found = added_kinds().get(kind)
    if found is None:
        raise _unknown(kind)
    return _DECODERS.setdefault(kind, msgspec.json.Decoder(found.value).decode)


def why_not_by_hand(work: Work | Unreadable) -> str | None:
    """Why nobody can have it run just now; None if one can."""
    if isinstance(work, Unreadable):
        return work.reason
    return "a machine does its work, and checks in" if isinstance(work, CheckIn) else None


def load_work(text: str, task: str | None = None) -> Work | Unreadable:
    """The work of a stored text, or what is wrong with it; `task` is what its row says that it needs."""
    if is_deeper(text.encode(), MOST_SHOWN_DEPTH):
        return Unreadable("", "its work is nested too deep to be shown", needs=task if is_added(task) else None)
    try:
        return read_work(text)
    except NotLoadable as error:
        return Unreadable(text, str(error), needs=task if is_added(task) else None)


def work_json(work: Work | Unreadable) -> dict[str, Any]:
    """The work as scripts see it: `{"kind": …, …}`, every field there."""
    if isinstance(work, Unreadable):
        return {"kind": work.kind, "text": work.text, "reason": work.reason}
    shape: dict[str, Any] = _decode_any(msgspec.json.encode(work))
    return {"kind": work.kind, **shape}


def answer_text(work: Work | Unreadable, result: Any) -> str:
    """What work has to say in the end, for people: what an agent said, or what a function returned."""
    said = result
    if isinstance(work, Agent):
        said = result.get("text") if isinstance(result, dict) else None
    if said is None:
        return ""
    return (said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)).rstrip("\n")
