"""Every kind of work that this process knows: our own, and those of packages, found once and when first asked for.

A package names its kind in the entry-point group `ostinato.executors`. One that cannot be loaded stops nobody: it is
told in the log, and by `ostinato doctor`; its works are then of an unknown kind here.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ostinato.errors import InvalidInput
from ostinato.logs import get_logger
from ostinato.models.policy_fields import POLICIES
from ostinato.models.work_kinds import Work, WorkKind, is_json
from ostinato.models.work_values import OUR_KINDS

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = [
    "GROUP",
    "added_kinds",
    "broken_kinds",
    "default_timeout",
    "find_kind",
    "installed_kinds",
    "kind_of",
    "one_of_flags",
    "secret_fields",
]

log = get_logger("ostinato")

GROUP = "ostinato.executors"
_OURS = {kind.name: kind for kind in OUR_KINDS}
_TAKEN = (
    "app",
    "db",
    "disabled",
    "gate_timeout",
    "help",
    "json",
    "name",
    "note",
    "once",
    "project",
    "timing",
    "tz",
    "version",
)
"""Flags of the commands that take work."""


@dataclass(frozen=True, slots=True)
class _Found:
    kinds: Mapping[str, WorkKind]
    broken: Mapping[str, str]


def find_kind(name: str) -> WorkKind | None:
    """The kind of this name; None if neither we nor a package have it. Ours are found without a look at packages."""
    return _OURS.get(name) or _added().kinds.get(name)


def kind_of(work: Work) -> WorkKind:
    """The kind of a work; InvalidInput if it was never installed, only imported."""
    kind = find_kind(work.kind)
    if kind is None or kind.value is not type(work):
        why = broken_kinds().get(work.kind) or f"no installed package adds it as an entry point of {GROUP}"
        raise InvalidInput(f"{work.kind} work is not known here: {why}", field="work")
    return kind


def installed_kinds() -> Mapping[str, WorkKind]:
    """Every kind by its name, ours first."""
    return {**_OURS, **_added().kinds}


def added_kinds() -> Mapping[str, WorkKind]:
    """Those of packages."""
    return _added().kinds


def broken_kinds() -> Mapping[str, str]:
    """The names that packages gave and that do not work, each with the reason."""
    return _added().broken


def secret_fields(kind: str) -> Sequence[str]:
    """The fields of a kind whose values may be secrets."""
    found = find_kind(kind)
    return () if found is None else [one.name for one in found.fields if one.about.secret]


def default_timeout(kind: str) -> str | None:
    """How long an attempt of this kind may take, unless its policy says otherwise."""
    found = find_kind(kind)
    return None if found is None else found.timeout


def one_of_flags() -> str:
    """The flags that choose a kind, as a sentence lists them."""
    *flags, last = [f"--{kind.main_flag.replace('_', '-')}" for kind in installed_kinds().values()]
    return f"{', '.join(flags)} and {last}"


@cache
def _added() -> _Found:
    kinds: dict[str, WorkKind] = {}
    broken: dict[str, str] = {}
    taken = {name: f"the flag --{name.replace('_', '-')} is taken" for name in _flags_taken()}
    for entry in _entry_points():
        try:
            kind = _loaded(entry, {**_OURS, **kinds}, taken)
        except BaseException as error:
            if isinstance(error, (KeyboardInterrupt, GeneratorExit)):
                raise
            why = str(error) if isinstance(error, InvalidInput) else f"{type(error).__name__}: {error}"
            broken.setdefault(entry.name, f"{entry.value}: {' '.join(why.split())}")
            log.error("the kind of work %r of a package does not work here: %s", entry.name, broken[entry.name])
        else:
            kinds[kind.name] = kind
            taken |= {flag: f"the flag --{flag.replace('_', '-')} is that of {kind.name} work" for flag in kind.flags}
    return _Found(kinds, {name: why for name, why in broken.items() if name not in kinds})


def _loaded(entry: EntryPoint, known: Mapping[str, WorkKind], taken: Mapping[str, str]) -> WorkKind:
    if entry.name in known:
        raise InvalidInput(f"another kind is called {entry.name!r} already", hint="uninstall one of the two packages")
    kind = entry.load()
    if not isinstance(kind, WorkKind):
        raise InvalidInput(f"it is a {type(kind).__name__}", hint="name a WorkKind")
    if kind.name != entry.name:
        raise InvalidInput(f"its kind is {kind.name!r}", hint="give the entry point the same name")
    for field in kind.fields:
        if not is_json(field.type):
            kinds = "text, numbers, booleans, None, lists and dicts"
            raise InvalidInput(f"its field {field.name!r} is {_name(field.type)}", hint=f"a field is made of {kinds}")
    import msgspec  # only those who have packages wait for it

    msgspec.json.Decoder(kind.value)  # raises where a text could be two things
    for flag in kind.flags:
        if flag in taken:
            raise InvalidInput(taken[flag], hint="give the kind, or the field, another name or flag")
    return kind


def _name(hint: Any) -> str:
    return getattr(hint, "__name__", str(hint))


def _flags_taken() -> Iterator[str]:
    yield from _TAKEN
    yield "unreadable"  # what work is called that cannot be read
    for kind in OUR_KINDS:
        yield from kind.flags
    for field in POLICIES.values():
        yield field.name
        yield field.about.flag


def _entry_points() -> Iterable[EntryPoint]:
    if not any(map(_may_have_some, dict.fromkeys(sys.path))):
        return ()
    from importlib.metadata import entry_points

    # Of a package that is found twice, on two places of the path, the first counts.
    return dict.fromkeys(entry_points(group=GROUP))


def _may_have_some(place: str) -> bool:
    """Whether a place of the path has packages that name our group. To read all metadata takes ten times as long, and
    most who call the command line have none."""
    try:
        names = os.listdir(place or ".")
    except OSError:
        return os.path.isfile(place)  # an archive: ask the slow way
    for name in names:
        if name.endswith((".dist-info", ".egg-info")):
            with suppress(OSError):
                if GROUP.encode() in Path(place, name, "entry_points.txt").read_bytes():
                    return True
    return False
