"""From flags to work, by the descriptions of its kinds. Pure; nothing is looked up.

`work_of` makes it anew, for `schedule add` and `exec`; `edited_work` changes what a schedule has; `said_fields` are
those of an agent that gets messages. `work_flags.py` has the flags.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_origin

from ostinato.errors import Conflict, InvalidInput
from ostinato.models.installed_kinds import installed_kinds, one_of_flags
from ostinato.models.nesting import too_deep
from ostinato.models.work_kinds import FieldForm, KindField, ProcessWork, Work, WorkKind

if TYPE_CHECKING:
    from ostinato.cli.work_flags import WorkFlag, WorkFlags
    from ostinato.models.work_values import Unreadable

__all__ = [
    "NOTHING",
    "as_command",
    "edited_work",
    "json_or_text",
    "placed",
    "said_fields",
    "whole",
    "work_env",
    "work_of",
]

NOTHING = "none"
"""What takes away what is there."""


def work_of(flags: WorkFlags) -> Work:
    """The work that the flags name; exactly one kind must be."""
    kind = _chosen(flags)
    if kind is None:
        hint = "such as --shell 'restic backup /srv' or --http POST https://example.com/hook"
        raise InvalidInput(f"there is nothing to do: give one of {one_of_flags()}", field="work", hint=hint)
    return _made(kind, flags)


def _made(kind: WorkKind, flags: WorkFlags) -> Work:
    """New work of a kind; InvalidInput if something is missing."""
    said = said_fields(kind, _given(flags))
    for one in kind.fields:
        if one.is_required and one.name not in said:
            flag = kind.flag_of(one)
            raise InvalidInput(f"{_typed(kind.main_flag)} needs {_typed(flag)}", field=flag, hint=one.about.help)
    return kind.make(**said)


def edited_work(flags: WorkFlags, current: Work | Unreadable) -> Work | None:
    """The work with what was given, or another one; None if nothing was."""
    chosen = _chosen(flags)
    if chosen is None and not _given(flags):
        return None
    if not isinstance(current, Work):
        if chosen is None:
            raise Conflict(f"the work of this schedule cannot be read: give it a new one with one of {one_of_flags()}")
        return _made(chosen, flags)
    kind = chosen or installed_kinds()[current.kind]
    if kind.name != current.kind:
        return _made(kind, flags)
    said = said_fields(kind, _given(flags), current)
    if kind.fresh and any(said.get(one.name, was) != was for one, was in _main(kind, current)):
        return _made(kind, flags)
    return kind.make(**{one.name: said.get(one.name, getattr(current, one.name)) for one in kind.fields})


def _main(kind: WorkKind, work: Work) -> Iterator[tuple[KindField, Any]]:
    for one in kind.main_fields:
        yield one, getattr(work, one.name)


def placed(work: Work, project: str | None) -> Work:
    """The work with the folder that is meant here: without a project, a relative one counts from the current one."""
    if project is not None or not isinstance(work, ProcessWork) or work.folder is None:
        return work
    return replace(work, folder=os.path.abspath(os.path.expanduser(work.folder)))


def _given(flags: WorkFlags) -> dict[str, Any]:
    """The flags that were given."""
    return {name: value for name, value in vars(flags).items() if value is not None}


def _chosen(flags: WorkFlags) -> WorkKind | None:
    """The kind of work that was named."""
    given = _given(flags)
    kinds = [kind for kind in installed_kinds().values() if kind.main_flag in given]
    if len(kinds) > 1:
        both = " and ".join(_typed(kind.main_flag) for kind in kinds)
        raise InvalidInput(f"a schedule does one thing, not {both}", field="work", hint=f"give one of {one_of_flags()}")
    return kinds[0] if kinds else None


def _typed(flag: str) -> str:
    return f"--{flag.replace('_', '-')}"


def said_fields(kind: WorkKind, given: Mapping[str, Any], current: Work | None = None) -> dict[str, Any]:
    """The fields of the work that were given. A flag that would be without effect is a mistake."""
    from ostinato.cli.work_flags import FLAGS

    known = FLAGS.get(kind.name, {})
    said: dict[str, Any] = {}
    for name in given:
        if name not in known:
            kinds = [installed_kinds()[other] for other, flags_of in FLAGS.items() if name in flags_of]
            wanted = " or ".join(_typed(one.main_flag) for one in kinds)
            raise InvalidInput(
                f"{_typed(name)} goes with {wanted}, not with {_typed(kind.main_flag)}", field=name, hint="leave it out"
            )
    for name, flag in known.items():
        if name in given:
            said |= _read(flag, given[name], said, current)
    _check_one_of(kind, given, said)
    return said


def _check_one_of(kind: WorkKind, given: Mapping[str, Any], said: dict[str, Any]) -> None:
    """Of two fields of which one is instead of the other, one is given, and clears the other."""
    for one in kind.fields:
        other = one.about.instead_of
        if other and kind.flag_of(one) in given:
            rival = next(each for each in kind.fields if each.name == other)
            if kind.flag_of(rival) in given:
                first, second = sorted(kind.flag_of(each) for each in (one, rival))
                raise InvalidInput(f"give either {_typed(first)} or {_typed(second)}, not both", field=first)
            said[other] = None


def _read(flag: WorkFlag, given: Any, said: Mapping[str, Any], current: Work | None) -> dict[str, Any]:
    """What was written for a flag, as the work takes it."""
    if len(flag.fields) != 1:
        return {one.name: word for one, word in zip(flag.fields, given if flag.fields else (), strict=True)}
    (one,) = flag.fields
    before = said.get(one.name, None if current is None else getattr(current, one.name))
    if flag.is_item:
        return {one.name: {**(before or {}), **_entries(flag.name, given)}}
    return {one.name: _value(one, flag.name, given, before)}


def _value(one: KindField, flag: str, given: Any, before: Any) -> Any:
    if one.is_nullable and given in (one.about.clear, [one.about.clear]):
        return None
    match one.form:
        case FieldForm.PAIRS:
            return _pairs_of(flag, given, one.about.sign, before or {})
        case FieldForm.TEXTS:
            items = [] if given == [one.about.clear] else given
            return [_number_or_text(item) for item in items] if one.has_numbers else items
        case FieldForm.COMMAND:
            return as_command(given)
        case FieldForm.NUMBER:
            return _number(one, given)
        case FieldForm.JSON:
            kind = get_origin(one.plain)
            return _json(flag.replace("_", "-"), given, one.about.example, kind if kind in (list, dict) else object)
        case _:
            return given


def _number_or_text(item: str) -> int | str:
    if item.isdecimal():
        return int(item)
    return item.lower() if re.fullmatch(r"\dXX", item) else item  # as a status is often written


def _number(one: KindField, text: str) -> float:
    if one.plain is not float:
        return whole(one.name, text)
    try:
        return float(text)
    except ValueError:
        raise InvalidInput(f"{one.name} cannot be {text!r}", field=one.name, hint="give a number") from None


def as_command(text: str) -> str | list[str]:
    """A command for a shell, or, from a JSON array of texts, the program and its arguments."""
    value = json_or_text(text) if text.lstrip().startswith("[") else text
    if isinstance(value, str):
        return text
    if not value or not all(isinstance(part, str) for part in value):
        hint = """write '["head", "-n", "5"]', or leave out the brackets for a shell"""
        raise InvalidInput(f"a command cannot be {text}", field="command", hint=hint)
    return list(value)


def work_env(pairs: Sequence[str], before: Mapping[str, str]) -> dict[str, str]:
    """Variables, `NAME=VALUE`, put to those from before; 'none' takes those away."""
    return _pairs_of("env", pairs, "=", before)


def _pairs_of(flag: str, given: Sequence[str], sign: str, before: Mapping[str, str]) -> dict[str, str]:
    """Names and values, put to those from before; 'none' takes those away. Names before a colon have no case."""
    found = {} if NOTHING in given else dict(before)
    typed = _typed(flag)
    example = f'{typed} "Name: value"' if sign == ":" else f"{typed} NAME{sign}VALUE"
    for name, value in _pairs(flag, given, sign, example):
        if sign == ":":
            same = next((known for known in found if known.lower() == name.strip().lower()), name.strip())
            found[same] = value.strip()
        else:
            found[name] = value
    return found


def _pairs(flag: str, given: Sequence[str], sign: str, example: str) -> Iterator[tuple[str, str]]:
    """What stands before and behind the sign."""
    for text in given:
        name, found, value = text.partition(sign)
        if text == NOTHING:
            continue
        if not found or not name.strip():
            raise InvalidInput(f"{_typed(flag)} cannot be {text!r}", field=flag, hint=f"write {example}")
        yield name, value


def whole(field: str, text: str) -> int:
    """A whole number from text."""
    try:
        return int(text)
    except ValueError:
        raise InvalidInput(f"{field} cannot be {text!r}", field=field, hint="give a whole number") from None


def _entries(flag: str, given: Sequence[str]) -> dict[str, Any]:
    """Single entries, `name=value`, of a JSON object."""
    found = {}
    for pair in given:
        name, equals, value = pair.partition("=")
        if not equals or not name.isidentifier():
            typed = _typed(flag)
            raise InvalidInput(f"{typed} cannot be {pair!r}", field=flag, hint=f"write {typed} name=value")
        found[name] = json_or_text(value)
    return found


def json_or_text(text: str) -> Any:
    """JSON where it is JSON (`3`, `true`, `[1]`), else the text itself."""
    try:
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return text


def _no_constant(name: str) -> Any:
    """Python would take `NaN` and `Infinity` for numbers, but they are not JSON."""
    raise ValueError(f"{name} is not JSON")


def _json(field: str, text: str, example: str, kind: type = object) -> Any:
    try:
        value = json.loads(text, parse_constant=_no_constant)
    except RecursionError:
        raise too_deep(f"--{field} is", field) from None
    except ValueError as error:
        raise InvalidInput(f"--{field} is not JSON: {error}", field=field, hint=_write(field, example)) from None
    if not isinstance(value, kind):
        raise InvalidInput(f"--{field} cannot be {text}", field=field, hint=_write(field, example))
    return value


def _write(field: str, example: str) -> str:
    return f"write --{field} '{example}'" if example else f"write JSON behind --{field}"
