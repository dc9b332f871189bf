"""What a kind of work is: its value, what people are told of its fields, and who executes it.

`work_values.py` describes our own four with it, packages describe theirs; `installed_kinds.py` knows them all. Of these
descriptions the flags of the command line, the requests of REST, the form of the page and what each role sees are made.
It imports nothing heavy, so that the command line prints its help in no time.
"""

from __future__ import annotations

import inspect
import keyword
import re
import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, fields, replace
from enum import StrEnum
from functools import cached_property
from hashlib import sha256
from typing import Any, ClassVar, Literal, Union, get_args, get_origin, get_type_hints

from ostinato.errors import InvalidInput
from ostinato.logs import one_line
from ostinato.models.policy_values import Retry, check_key, check_whole, positive_duration

__all__ = [
    "KIND_PREFIX",
    "FieldForm",
    "KindField",
    "ProcessWork",
    "Shown",
    "Work",
    "WorkField",
    "WorkKind",
    "check_flag",
    "check_task",
    "counted_as",
    "is_added",
    "is_task",
    "line_of",
    "parts_of",
    "subject_of",
    "unserved",
]

KIND_PREFIX = "kind:"
"""In front of the name of an added kind: so nodes tell, among the tasks that they know, what they can execute."""


class Work:
    """What to do, as a value. The class of a kind of work is a frozen dataclass of this; its fields are JSON."""

    __slots__ = ()
    kind: ClassVar[str]
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    """Every kind is a dataclass."""

    @property
    def line(self) -> str:
        """The work on one line, as lists show it: its first field, unless a class says another."""
        return str(getattr(self, fields(self)[0].name))

    @property
    def needs(self) -> str | None:
        """The name that a node must know to execute it; None for what every node can do."""
        return KIND_PREFIX + self.kind

    def conversation(self, project: str | None) -> str | None:
        """The key of the conversation that it continues: such runs go one after the other."""
        return None

    def turn(self, project: str | None) -> str | None:
        """The session in which it waits for its turn; None if nothing but its policy says one."""
        conversation = self.conversation(project)
        return None if conversation is None else f"{self.kind}:{conversation}"


class ProcessWork(Work):
    """Work in a process of its own, which has a folder and variables around it."""

    __slots__ = ()

    @property
    def needs(self) -> str | None:
        return None

    @property
    def env(self) -> Mapping[str, str]:
        """Variables; values may be references to secrets."""
        return {}

    @property
    def folder(self) -> str | None:
        """Where it runs, counted from the project's folder."""
        return None

    @property
    def user(self) -> str | None:
        """Who it runs as, if not as the engine."""
        return None


class Shown(StrEnum):
    """Who sees the value of a field. Of a secret, an admin; others see it only where it is a reference."""

    VIEWERS = "viewer"
    OPERATORS = "operator"
    WITHOUT_QUERY = "without_query"
    """An address, of which viewers see no query."""


class FieldForm(StrEnum):
    """How a field is written at the command line and in a form."""

    TEXT = "text"
    NUMBER = "number"
    SWITCH = "switch"
    CHOICE = "choice"
    TEXTS = "texts"
    PAIRS = "pairs"
    COMMAND = "command"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class WorkField:
    """What people are told of a field of a work: `query: Annotated[str, WorkField("The query to run.")]`."""

    help: str
    """A sentence that says what it is."""
    label: str = ""
    """What the page calls it; its name, unless given."""
    secret: bool = False
    """Whether its value, or the values of a dict, may be references to secrets: `env:NAME`, `file:PATH`. They are
    resolved when a run starts, hidden in its output, and shown to admins alone."""
    shown: Shown = Shown.OPERATORS
    """Who sees it, if it is no secret."""
    flag: str = ""
    """Its flag at the command line; that of the kind for its main fields, else `KIND-NAME`, unless given."""
    written: str = ""
    """What the command line says instead of `help`."""
    otherwise: str = ""
    """What holds without it, where its default does not say so."""
    clear: str = "none"
    """What takes it away at the command line, where it may be None or empty."""
    sign: str = "="
    """What stands between the name and the value of a pair."""
    item_flag: str = ""
    """A further flag for one entry of a dict, `name=value`, and its help."""
    item_help: str = ""
    instead_of: str = ""
    """The field that it takes the place of: only one of them is given."""
    example: str = ""
    """A right value, as it is written."""
    standard: Any = None
    """What REST takes if a field that must be given is not."""
    missing: str = ""
    """What is said where it is empty: of a field that must be given, though its class has a default for it."""
    longest: int | None = None
    """Of a text that must say something."""
    unit: str = ""
    """Of a number, where it is shown."""


@dataclass(frozen=True, slots=True)
class KindField:
    """A field of a kind of work: what its class says, and what people are told."""

    name: str
    type: Any
    is_required: bool
    default: Any
    about: WorkField

    @property
    def label(self) -> str:
        """What the page calls it."""
        return self.about.label or self.name.replace("_", " ").capitalize()

    @property
    def plain(self) -> Any:
        """Its type without None: what it may be if it says something."""
        parts = tuple(part for part in parts_of(self.type) if part is not types.NoneType)
        return Union[parts or (types.NoneType,)]  # noqa: UP007  # there may be one or many

    @property
    def form(self) -> FieldForm:
        """How it is written, by its type."""
        parts = parts_of(self.plain)
        origins = [get_origin(part) for part in parts]
        if str in parts:
            return FieldForm.COMMAND if list in origins else FieldForm.TEXT
        if len(parts) != 1:
            return FieldForm.JSON
        (only,), (origin,) = parts, origins
        if only is bool:
            return FieldForm.SWITCH
        if only in (int, float):
            return FieldForm.NUMBER
        if origin is Literal:
            return FieldForm.CHOICE
        if origin is list and {str} <= {*parts_of(get_args(only)[0])} <= {str, int}:
            return FieldForm.TEXTS
        return FieldForm.PAIRS if only == dict[str, str] else FieldForm.JSON

    @property
    def choices(self) -> list[str]:
        """The words that it may be, if it may not be any."""
        return [str(word) for part in parts_of(self.type) if get_origin(part) is Literal for word in get_args(part)]

    @property
    def has_numbers(self) -> bool:
        """Whether those of its texts that are digits are numbers."""
        return self.form is FieldForm.TEXTS and int in parts_of(get_args(self.plain)[0])

    @property
    def is_nullable(self) -> bool:
        """Whether it may be None."""
        return types.NoneType in parts_of(self.type)


def parts_of(hint: Any) -> tuple[Any, ...]:
    """The members of a union; a type that is none is its own."""
    return get_args(hint) if isinstance(hint, types.UnionType) or "Union" in str(get_origin(hint)) else (hint,)


@dataclass(frozen=True)
class WorkKind:
    """A kind of work: the one description of it.

    A package names one in the entry-point group `ostinato.executors`, under the name of its `kind`.
    """

    value: type[Work]
    """The class of its works: a frozen dataclass."""
    execute: Callable[..., Any] | str
    """`async def execute(work, run)`, or a plain function, which is called on a thread; what it returns is the result
    of the run. As text, `module:name`, it is imported when a node starts. Of ours: the class of an executor."""
    label: str = ""
    """What pages call it; its name, unless given."""
    timeout: str | None = None
    """How long an attempt may take, unless its policy says otherwise."""
    retry: Retry | None = None
    """What is tried again, unless its policy says otherwise; None for what holds for everything."""
    break_after: int | None = None
    """How many failures in a row switch a schedule off, unless its policy says otherwise; None for no such number."""
    needs_admin: bool = True
    """Whether only an admin may ask for it over REST: so it is for what executes code."""
    main: tuple[str, ...] = ()
    """The fields that the flag of the kind gives; the first field, unless given."""
    flag: str = ""
    """The flag of the kind at the command line; its name, unless given."""
    bare: bool = False
    """Whether the other flags are the bare names of the fields, without that of the kind: so ours are."""
    fresh: bool = False
    """Whether an edit of its main field begins with all others anew."""
    is_switch: bool = False
    """Whether its flag stands alone and every field has a flag of its own."""

    def __post_init__(self) -> None:
        value = self.value
        how = getattr(value, "__dataclass_params__", None)
        if not (isinstance(value, type) and issubclass(value, Work)) or how is None or not how.frozen:
            raise InvalidInput(f"{value!r} is not a frozen dataclass that inherits from ostinato.Work")
        name = getattr(value, "kind", None)
        if not isinstance(name, str) or not re.fullmatch(r"[a-z][a-z0-9_]{0,30}", name) or name in _NO_KINDS:
            raise InvalidInput(f"a kind of work cannot be called {name!r}", hint='write kind: ClassVar[str] = "sql"')
        if not fields(value):
            raise InvalidInput(f"{value.__name__} has no fields", hint="it needs one at least, such as query: str")
        for one in fields(value):
            if one.name in _RESERVED or not re.fullmatch(r"[a-z][a-z0-9_]*", one.name):
                hint = f"give a name in small letters; {', '.join(sorted(_RESERVED))} are reserved"
                raise InvalidInput(f"a field of work cannot be called {one.name!r}", hint=hint)
        names = [one.name for one in fields(value)]
        for main in self.main:
            if main not in names:
                raise InvalidInput(f"main names {main!r}, which is no field", hint=f"name one of {', '.join(names)}")
        if self.flag:
            check_flag(self.flag)
        if self.timeout is not None:
            positive_duration("timeout", self.timeout)
        if self.break_after is not None:
            check_whole("break_after", self.break_after, 1)

    @property
    def name(self) -> str:
        """As `kind` says it."""
        return self.value.kind

    @property
    def title(self) -> str:
        """What pages call it."""
        return self.label or self.name

    @property
    def help(self) -> str:
        """What its class says of itself, in one sentence or two."""
        return " ".join(inspect.cleandoc(self.value.__doc__ or "").partition("\n\n")[0].split())

    @cached_property
    def fields(self) -> tuple[KindField, ...]:
        """Its fields, in the order of the class."""
        hints = get_type_hints(self.value, include_extras=True)
        parameters = inspect.signature(self.value).parameters
        return tuple(_field(one, hints[one.name], parameters[one.name].default) for one in fields(self.value))

    @property
    def main_fields(self) -> tuple[KindField, ...]:
        """Those that its own flag gives; none of a switch."""
        if self.is_switch:
            return ()
        return tuple(one for one in self.fields if one.name in self.main) if self.main else self.fields[:1]

    def flag_of(self, field: KindField) -> str:
        """The flag of a field that is not a main one."""
        return field.about.flag or (field.name if self.bare else f"{self.name}_{field.name}")

    @property
    def main_flag(self) -> str:
        """The flag that chooses this kind."""
        return self.flag or self.name

    @property
    def flags(self) -> tuple[str, ...]:
        """Every flag of it."""
        others = [one for one in self.fields if one not in self.main_fields]
        items = [one.about.item_flag for one in others if one.about.item_flag]
        return (self.main_flag, *(self.flag_of(one) for one in others), *items)

    @property
    def is_public(self) -> bool:
        """Whether viewers see all of it but secrets, and its line, which is no secret."""
        return not any(one.about.secret for one in self.main_fields) and all(
            one.about.secret or one.about.shown is Shown.VIEWERS for one in self.fields
        )

    def make(self, **given: Any) -> Work:
        """Work of this kind; InvalidInput if it cannot be, whatever the class of a package raises then."""
        try:
            work = self.value(**given)
        except InvalidInput:
            raise
        except Exception as error:
            raise InvalidInput(f"this {self.name} work cannot be: {one_line(error)}") from error
        self.check_complete(work)
        return work

    def check_complete(self, work: Work) -> None:
        """InvalidInput, if it lacks what only a message to a session would add."""
        for one in self.fields:
            if one.about.missing and not getattr(work, one.name):
                raise InvalidInput(
                    one.about.missing, field=one.name, hint=one.about.example and f"such as {one.about.example}"
                )

    def references(self, work: Work) -> dict[str, str]:
        """The values of its secret fields, by the field, or by the name in it."""
        found: dict[str, str] = {}
        for field, prefix in self._secrets:
            value = getattr(work, field)
            if isinstance(value, Mapping):
                found |= {prefix + name: text for name, text in value.items()}
            elif value is not None:
                found[field] = value
        return found

    def resolved(self, work: Work, references: Mapping[str, str]) -> Work:
        """The work with these values in the place of those of `references`."""
        changed: dict[str, Any] = {}
        for field, prefix in self._secrets:
            value = getattr(work, field)
            if isinstance(value, Mapping):
                changed[field] = {name: references[prefix + name] for name in value}
            elif value is not None:
                changed[field] = references[field]
        return replace(work, **changed) if changed else work

    @cached_property
    def _secrets(self) -> tuple[tuple[str, str], ...]:
        """The secret fields, and what stands before the names in them; nothing, if there is only one."""
        found = [one.name for one in self.fields if one.about.secret]
        return tuple((name, f"{name}." if len(found) > 1 else "") for name in found)


_NO_KINDS = frozenset({*keyword.kwlist, "unreadable"})
"""What cannot be a flag, and what work is called that cannot be read."""
_RESERVED = frozenset({"kind", "of", *(name for name in vars(Work) if not name.startswith("_"))})
"""What works, and the answers that are made of them, have themselves."""


def check_flag(flag: str) -> None:
    """A flag is the name of a parameter, too."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", flag) or keyword.iskeyword(flag):
        raise InvalidInput(f"the flag {flag!r} cannot be typed", hint="give small letters, digits and _, such as dsn")


def _field(one: Field[Any], hint: Any, default: Any) -> KindField:
    about = next((part for part in getattr(hint, "__metadata__", ()) if isinstance(part, WorkField)), WorkField(""))
    plain = get_args(hint)[0] if hasattr(hint, "__metadata__") else hint
    is_required = default is inspect.Parameter.empty or bool(about.missing)
    if one.default_factory is not MISSING:
        default = one.default_factory()
    return KindField(one.name, plain, is_required, None if is_required else default, about)


def line_of(work: Work) -> str:
    """The line of a work. What the class of a package raises must not hide the row, nor the others in a list."""
    try:
        return str(work.line)
    except Exception as error:
        return f"{work.kind} work, whose line cannot be shown: {type(error).__name__}"


def is_task(needs: str | None) -> bool:
    """Whether what a run needs is a task, and no kind of work."""
    return needs is not None and not needs.startswith(KIND_PREFIX)


def is_added(needs: str | None) -> bool:
    """Whether what a run needs is a kind of work that a package adds. A node that cannot read such work lacks the
    package, or has another version of it; others may read it."""
    return needs is not None and needs.startswith(KIND_PREFIX)


def check_task(name: Any, hint: str) -> None:
    """The name of a task, which is none of a kind of work."""
    check_key(name, "task", hint)
    if name.startswith(KIND_PREFIX):
        raise InvalidInput(
            f"a task cannot be called {name!r}", field="task", hint="kind: is reserved for the scheduler"
        )


def counted_as(task: str | None, schedule: str | None, kind: str) -> str:
    """What a run is counted under: its task; for other work its schedule, and without one its kind."""
    return (task if kind == "function" else schedule) or kind


def subject_of(task: str | None, kind: str, work: str, session: str | None) -> str:
    """What the incidents of a run without a schedule are of: its task, its session's kind of work, or this very work.

    The stored work stands there as a few letters: a viewer, who sees incidents, must not see a command.
    """
    if kind == "function" or session is not None:
        return counted_as(task, None, kind)
    return f"{kind} {sha256(work.encode()).hexdigest()[:6]}"


def unserved(needs: str) -> str:
    """What is wrong where no running node knows this name of a task, or of an added kind of work."""
    if not is_task(needs):
        kind = needs.removeprefix(KIND_PREFIX)
        return f"no running node can execute {kind} work: its package is not installed there, or cannot be loaded"
    return f"task {needs!r} is not registered on any running node"
