"""What to do: the kinds of work, and their JSON form.

A stored work that this program cannot read becomes `Unreadable`, which keeps its text and says why.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from functools import lru_cache
from typing import Any, ClassVar

import msgspec

from ostinato.errors import InvalidInput, NotLoadable
from ostinato.models.nesting import MOST_SHOWN_DEPTH, check_depth, is_deeper, too_deep
from ostinato.models.policy_fields import POLICIES
from ostinato.models.policy_values import check_key
from ostinato.models.work_checks import (
    check_command,
    check_env,
    check_flag_value,
    check_kind,
    check_text,
    check_url,
    parse_size,
    processor_seconds,
)

__all__ = [
    "PAYLOADS_END",
    "Agent",
    "Function",
    "Http",
    "Shell",
    "Unreadable",
    "Work",
    "default_timeout",
    "load_work",
    "payload_text",
    "payload_work",
    "read_work",
    "work_json",
    "work_line",
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
class Shell:
    """Run a command: a text goes through `sh -c`, a list is executed as it is.

    `env` may hold references to secrets (`env:NAME`, `file:PATH`). `folder` counts from the project's. `memory` is in
    bytes or such as "512MB", `cpu` in seconds of processor time.
    """

    kind: ClassVar[str] = "shell"
    task: ClassVar[None] = None
    command: str | list[str]
    env: dict[str, str] = field(default_factory=dict)
    folder: str | None = None
    user: str | None = None
    nice: int | None = None
    memory: int | str | None = None
    cpu: float | str | None = None

    def __post_init__(self) -> None:
        check_command(self.command, "command")
        check_env(self.env)
        check_text("folder", self.folder)
        check_text("user", self.user)
        nice = self.nice
        if nice is not None and (isinstance(nice, bool) or not isinstance(nice, int) or not -20 <= nice <= 19):
            raise InvalidInput(
                f"nice cannot be {self.nice!r}", field="nice", hint="give -20 to 19; 10 is a low priority"
            )
        if self.memory is not None:
            object.__setattr__(self, "memory", parse_size(self.memory, "memory"))
        if self.cpu is not None:
            object.__setattr__(self, "cpu", processor_seconds(self.cpu))


@dataclass(frozen=True, slots=True)
class Agent:
    """Give a prompt to an AI agent's command line; `cli` names one of settings.agents.

    `context` is `isolated` (a fresh conversation for each run), `group` (one continued conversation for the project)
    or `session:NAME` (one continued conversation of this name).
    """

    kind: ClassVar[str] = "agent"
    task: ClassVar[None] = None
    prompt: str
    context: str = "isolated"
    cli: str = "claude"
    model: str | None = None
    system: str | None = None
    permission_mode: str | None = None
    allowed_tools: list[str] = field(default_factory=list)
    mcp_config: str | None = None
    env: dict[str, str] = field(default_factory=dict)
    folder: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.prompt, str) or not self.prompt.strip():
            raise InvalidInput("an agent needs a prompt", field="prompt", hint="such as Summarise new issues")
        name = self.context.removeprefix("session:") if isinstance(self.context, str) else ""
        if self.context not in ("isolated", "group") and (name == self.context or not name.strip()):
            raise InvalidInput(
                f"context cannot be {self.context!r}", field="context", hint="it is isolated, group or session:NAME"
            )
        if len(self.context) > 100 or not self.context.isprintable():
            raise InvalidInput(
                f"context cannot be {self.context!r}", field="context", hint="give a name of up to 90 characters"
            )
        check_key(self.cli, "cli", "give the name of an agent, such as claude")
        check_text("system", self.system)
        for what in ("model", "permission_mode", "mcp_config"):
            check_flag_value(what, getattr(self, what))
        check_kind("allowed_tools", self.allowed_tools, list, 'a list of names, such as ["Read"]')
        for tool in self.allowed_tools:
            check_flag_value("allowed_tools", tool)
        check_env(self.env)
        check_text("folder", self.folder)

    def conversation(self, project: str | None) -> str | None:
        """The key of the conversation that it continues; None for a fresh one."""
        if self.context == "isolated":
            return None
        return f"{self.cli}/{self.context}" + (f"/{project}" if self.context == "group" and project else "")


@dataclass(frozen=True, slots=True)
class Http:
    """Send a request. A status that is not among `expect` (a number such as 204, or a class such as "2xx") fails it.

    `headers` may hold references to secrets: `env:NAME`, `Bearer file:PATH`.
    """

    kind: ClassVar[str] = "http"
    task: ClassVar[None] = None
    method: str
    url: str
    headers: dict[str, str] = field(default_factory=dict)
    json: Any = None
    body: str | None = None
    expect: list[int | str] = field(default_factory=lambda: ["2xx"])

    def __post_init__(self) -> None:
        if not isinstance(self.method, str) or not re.fullmatch(r"[A-Za-z]{1,20}", self.method):
            raise InvalidInput(f"method cannot be {self.method!r}", field="method", hint="such as GET or POST")
        object.__setattr__(self, "method", self.method.upper())
        check_url(self.url)
        check_kind("headers", self.headers, dict, 'names and values, such as {"Accept": "*/*"}')
        for name, value in self.headers.items():
            good = isinstance(name, str) and isinstance(value, str)
            if not good or not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name) or re.search(r"[\r\n\0]", value):
                raise InvalidInput(f"a header cannot be {name!r}: {value!r}", field="headers", hint="as in Accept: */*")
        check_kind("body", self.body or "", str, "text, or json instead")
        if self.json is not None and self.body is not None:
            raise InvalidInput("give either json or body, not both", field="body")
        check_kind("expect", self.expect or None, list, 'a list such as [204] or ["2xx"]')
        for status in self.expect:
            if not re.fullmatch(r"[1-5]\d\d|[1-5]xx", str(status)):
                raise InvalidInput(f"expect cannot be {status!r}", field="expect", hint="such as 204 or 2xx")

    def expects(self, status: int) -> bool:
        """Whether an answer of this status is a success."""
        return any(str(wanted) in (str(status), f"{status // 100}xx") for wanted in self.expect)


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Stored work that this program cannot read: kept as it is, shown as broken, never executed."""

    text: str
    reason: str
    kind: str = "unreadable"


Work = Function | Shell | Agent | Http
"""What a run can execute."""

_KINDS: dict[str, type[Work]] = {kind.kind: kind for kind in (Function, Shell, Agent, Http)}
_decode_any = msgspec.json.Decoder().decode
_DECODERS = {kind: msgspec.json.Decoder(cls).decode for kind, cls in _KINDS.items()}


def default_timeout(kind: str) -> str | None:
    """How long an attempt of this kind may take, unless its policy says otherwise."""
    return POLICIES["timeout"].about.of_kinds.get(kind)


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
    if isinstance(work, Function):
        check_key(work.task, "task", "give the name of a task, such as mail")
    what = f"the arguments of task {work.task!r} are" if isinstance(work, Function) else f"this {work.kind} work is"
    field = "args" if isinstance(work, Function) else "json"
    free = [work.args, work.kwargs] if isinstance(work, Function) else work.json if isinstance(work, Http) else None
    try:
        encoded = msgspec.json.encode(work if isinstance(work, Function) else _said(work))
        check_depth(encoded, what, field)
        _check_finite(free, encoded)
    except InvalidInput:
        raise
    except RecursionError as error:
        raise too_deep(what, field) from error
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInput(
            f"{what} not JSON: {error}",
            field=field,
            hint="pass text, numbers, booleans, None, lists and dicts, and load other things inside the task",
        ) from error
    return f'{{"kind":"{work.kind}",' + encoded[1:].decode()


def _said(work: Work) -> dict[str, Any]:
    """The fields of a work that say something."""
    given = {each.name: getattr(work, each.name) for each in fields(work)}
    defaults = {
        each.name: each.default_factory() if each.default_factory is not MISSING else each.default
        for each in fields(work)
    }
    return {name: value for name, value in given.items() if value != defaults[name]}


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
        check_depth(encoded, "the payload is", "payload")
        _check_finite(payload, encoded)
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
    decode = _DECODERS.get(kind)
    if decode is None:
        known = ", ".join(sorted(_DECODERS))
        raise NotLoadable(f"its work is of the unknown kind {kind!r}; this version knows {known}: upgrade Ostinato")
    try:
        return decode(text)
    except RecursionError:
        raise NotLoadable(f"its {kind} work is nested too deep") from None
    except msgspec.DecodeError as error:
        raise NotLoadable(f"its {kind} work is not readable: {error}") from error


def load_work(text: str) -> Work | Unreadable:
    """The work of a stored text, or what is wrong with it."""
    if is_deeper(text.encode(), MOST_SHOWN_DEPTH):
        return Unreadable("", "its work is nested too deep to be shown")
    try:
        return read_work(text)
    except NotLoadable as error:
        return Unreadable(text, str(error))


def work_json(work: Work | Unreadable) -> dict[str, Any]:
    """The work as scripts see it: `{"kind": …, …}`, every field there."""
    if isinstance(work, Unreadable):
        return {"kind": work.kind, "text": work.text, "reason": work.reason}
    shape: dict[str, Any] = _decode_any(msgspec.json.encode(work))
    return {"kind": work.kind, **shape}


def work_line(work: Work | Unreadable) -> str:
    """The work on one line, as lists show it."""
    match work:
        case Function():
            return work.task
        case Shell():
            return work.command if isinstance(work.command, str) else shlex.join(work.command)
        case Agent():
            return work.prompt
        case Http():
            return f"{work.method} {work.url}"
        case Unreadable():
            return work.reason
