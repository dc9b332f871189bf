"""The flags of work, made of the descriptions of its kinds, ours and those of packages. `work.py` reads them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, make_dataclass
from typing import Annotated, Any, Literal, get_args

from cyclopts import Group, Parameter

from ostinato.cli.options import Text, Texts
from ostinato.models.installed_kinds import installed_kinds
from ostinato.models.kind_parts import of_each_kind
from ostinato.models.work_kinds import FieldForm, KindField, WorkKind

__all__ = ["FLAGS", "NO_WORK", "WorkFlag", "WorkFlags", "dashed", "with_flags"]


@dataclass(frozen=True, slots=True)
class WorkFlag:
    """A flag, and what it gives."""

    name: str
    help: str
    type: Any
    fields: tuple[KindField, ...]
    """More than one, where it takes as many words."""
    is_item: bool = False
    """Whether it gives one entry of a dict, and not the whole."""


def _of(kind: WorkKind) -> Iterator[WorkFlag]:
    """The flags of a kind, its own first."""
    main = kind.main_fields
    words = tuple.__class_getitem__((str,) * len(main)) | None
    main_type = _type(main[0], kind.main_flag) if len(main) == 1 else words
    if kind.is_switch:
        yield WorkFlag(kind.main_flag, kind.help, Annotated[bool | None, Parameter(negative=())], ())
    else:
        yield WorkFlag(kind.main_flag, _help(main[0]) or kind.help, main_type, main)
    for one in kind.fields:
        if one in main:
            continue
        flag = kind.flag_of(one)
        yield WorkFlag(flag, _help(one), _type(one, flag), (one,))
        if one.about.item_flag:
            yield WorkFlag(one.about.item_flag, one.about.item_help, list[str] | None, (one,), is_item=True)


def _help(one: KindField) -> str:
    """What is said of it; of a package's field also what holds without it."""
    about = one.about
    if about.written or one.is_required:
        return about.written or about.help
    again = " May be given again." if one.form in (FieldForm.TEXTS, FieldForm.PAIRS) else ""
    again = " May be env:NAME or file:PATH, read at each start." + again if about.secret else again
    standing = about.otherwise or ("" if one.default in (None, [], {}, False) else str(one.default))
    default = f" [default: {standing}]" if standing else ""
    return f"{about.help}{again}{default}".strip()


def _type(one: KindField, flag: str) -> Any:
    """What is written for it. 'none' may be written for what may be None, so a number is text."""
    match one.form:
        case FieldForm.SWITCH:
            return Annotated[bool | None, Parameter(negative=f"--no-{dashed(flag)}")]
        case FieldForm.CHOICE if not one.is_nullable:
            return Literal[get_args(one.plain)] | None
        case FieldForm.TEXTS:
            return list[str] | None
        case FieldForm.PAIRS:
            return Texts
        case _:
            return Text if _may_have_dash(one) else str | None


def _may_have_dash(one: KindField) -> bool:
    """Whether its value may begin with a dash: a command, a prompt, a body, a number."""
    return one.is_required or one.form in (FieldForm.JSON, FieldForm.NUMBER) or one.about.clear == ""


def dashed(name: str) -> str:
    """A flag without its dashes, as it is typed."""
    return name.replace("_", "-")


def _flags(kind: WorkKind) -> dict[str, WorkFlag]:
    """The flags of a kind by their names; raises where there cannot be such flags."""
    flags = {flag.name: flag for flag in _of(kind)}
    make_dataclass("Flags", [(name, flag.type) for name, flag in flags.items()])
    " ".join([kind.title, *(flag.help for flag in flags.values())])  # each a text, or no help could be printed
    return flags


FLAGS = of_each_kind(_flags, "flags", installed_kinds())
"""The flags of each kind."""


def _groups() -> dict[str, Group]:
    """Of each flag: its kind, or the kinds that share it, which stand behind the last of them."""
    kinds = [installed_kinds()[name] for name in FLAGS]
    sharing: dict[str, list[int]] = {}
    for number, kind in enumerate(kinds):
        for name in FLAGS[kind.name]:
            sharing.setdefault(name, []).append(number)
    groups: dict[tuple[int, ...], Group] = {}
    for numbers in sharing.values():
        title, *others = [kinds[number].title for number in numbers]
        order = 1 + numbers[-1] / 100 + len(others) / 1000
        groups[*numbers,] = Group(" and ".join([title, *map(str.lower, others)]), sort_key=order)
    return {name: groups[*numbers,] for name, numbers in sharing.items()}


def _made(cls: type[Any]) -> type[Any]:
    """The class with every flag once."""
    return with_flags(cls, {name: flag for kind in FLAGS.values() for name, flag in kind.items()}, _groups())


def with_flags(cls: type[Any], flags: Mapping[str, WorkFlag], groups: Mapping[str, Group]) -> type[Any]:
    """The class with these flags; the help shows each in its group."""
    found = [
        (name, Annotated[flag.type, Parameter(group=groups[name], help=flag.help)], field(default=None))
        for name, flag in flags.items()
    ]
    about = {"__doc__": cls.__doc__, "__module__": cls.__module__}
    return make_dataclass(cls.__name__, found, bases=(cls,), frozen=True, namespace=about)


@Parameter(name="*")
@_made
class WorkFlags:
    """What to do: the flag of a kind of work, with the flags that go with it."""


NO_WORK = WorkFlags()
