"""What the kind of a package must be, before flags, requests and answers are made of it: one that is wrong would take
them all away. `installed_kinds.py` asks when it loads a package. `WorkKind` itself checks what needs no types.
"""

from __future__ import annotations

import types
from typing import Any, Literal, get_args, get_origin, get_type_hints

from ostinato.errors import InvalidInput
from ostinato.models.work_kinds import KindField, ProcessWork, Work, WorkField, WorkKind, check_flag, parts_of

__all__ = ["check_added"]

_SECRETS = ({str}, {dict[str, str]})
_OURS_ALONE = ("needs", "conversation", "turn")
"""What a node without the package could not know: whether it may take a run, and which runs go in turn."""


def check_added(kind: WorkKind) -> None:
    """Refuse a kind that some door could not tell, or that a node without its package would take."""
    value = kind.value
    if issubclass(value, ProcessWork):
        raise InvalidInput(f"{value.__name__} is a ProcessWork", hint="give a frozen dataclass of ostinato.Work")
    for name in _OURS_ALONE:
        if getattr(value, name) is not getattr(Work, name):
            raise InvalidInput(f"{value.__name__} says {name} itself", hint="only line may be said otherwise")
    if not isinstance(kind.label, str):
        raise InvalidInput(f"its label is {kind.label!r}", hint="give text")
    names = [field.name for field in kind.fields]
    for field in kind.fields:
        _check_field(field, names)
    import msgspec  # only those who have packages wait for it

    msgspec.json.Decoder(value)  # raises where a text could be two things
    msgspec.json.encode([kind.help, *(field.default for field in kind.fields)])  # as pages are told of it
    flags = list(kind.flags)
    for flag in flags:
        if flags.count(flag) > 1:
            raise InvalidInput(f"the flag --{flag.replace('_', '-')} is that of two fields", hint="give another flag")


def _check_field(field: KindField, names: list[str]) -> None:
    if not _is_json(field.type):
        kinds = "text, numbers, booleans, None, lists and dicts"
        raise InvalidInput(f"its field {field.name!r} is {_name(field.type)}", hint=f"a field is made of {kinds}")
    about = field.about
    for name, hint in get_type_hints(WorkField).items():
        said = getattr(about, name)
        if hint is not Any and not isinstance(said, hint):
            raise InvalidInput(f"{name} of its field {field.name!r} is {said!r}", hint=f"give {_name(hint)}")
    if about.secret and {*parts_of(field.type)} - {types.NoneType} not in _SECRETS:
        hint = "only text, and a dict of texts, can be secret: str, str | None or dict[str, str]"
        raise InvalidInput(f"its secret field {field.name!r} is {_name(field.type)}", hint=hint)
    if about.instead_of and about.instead_of not in names:
        hint = f"name one of {', '.join(names)}"
        raise InvalidInput(f"instead_of of its field {field.name!r} is {about.instead_of!r}", hint=hint)
    for flag in filter(None, (about.flag, about.item_flag)):
        check_flag(flag)


def _is_json(hint: Any) -> bool:
    """Whether what a field may be can be written, sent and stored as it is."""
    if hint in (str, int, float, bool, types.NoneType, Any):
        return True
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Literal:
        return all(isinstance(word, str) for word in parts)
    if origin is dict and parts[0] is not str:
        return False
    return (origin in (list, dict) or parts_of(hint) != (hint,)) and all(map(_is_json, parts))


def _name(hint: Any) -> str:
    return str(hint) if get_args(hint) else getattr(hint, "__name__", str(hint))
