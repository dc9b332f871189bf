"""Every kind of work that this process knows: our own, and those of packages, found once and when first asked for.

A package names its kind in the entry-point group `ostinato.executors`. One that cannot be loaded stops nobody: it is
told in the log, and by `ostinato doctor`; its works are then of an unknown kind here.
"""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ostinato.errors import InvalidInput
from ostinato.logs import get_logger, one_line
from ostinato.models.kind_checks import check_added
from ostinato.models.policy_fields import POLICIES
from ostinato.models.work_kinds import Work, WorkKind
from ostinato.models.work_values import OUR_KINDS

if TYPE_CHECKING:
    from importlib.metadata import Distribution, EntryPoint

__all__ = [
    "GROUP",
    "added_kinds",
    "broken_kinds",
    "default_policy",
    "find_kind",
    "installed_kinds",
    "kind_faults",
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
    faults: Sequence[tuple[str, str]]


_NOTHING = _Found({}, ())
_kept: dict[str, _Found] = {}
"""What was found, once it was looked for."""
_thread = threading.local()


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


def kind_faults() -> Sequence[tuple[str, str]]:
    """What packages name in our group and cannot be loaded, each with the reason."""
    return _added().faults


def broken_kinds() -> Mapping[str, str]:
    """The names of kinds that nobody here has because their package cannot be loaded, each with the reason."""
    found = _added()
    return {name: why for name, why in reversed(found.faults) if name not in found.kinds}


def secret_fields(kind: str) -> Sequence[str]:
    """The fields of a kind whose values may be secrets."""
    found = find_kind(kind)
    return () if found is None else [one.name for one in found.fields if one.about.secret]


def default_policy(kind: str) -> dict[str, Any]:
    """What holds for this kind of work unless its policy says otherwise: its timeout, retry and breaker, if any."""
    found = find_kind(kind)
    own = {} if found is None else {"timeout": found.timeout, "retry": found.retry, "break_after": found.break_after}
    return {name: value for name, value in own.items() if value is not None}


def one_of_flags() -> str:
    """The flags that choose a kind, as a sentence lists them."""
    *flags, last = [f"--{kind.main_flag.replace('_', '-')}" for kind in installed_kinds().values()]
    return f"{', '.join(flags)} and {last}"


def _added() -> _Found:
    """What packages add. Threads that ask at once look at once, and the first result is kept and told.

    No lock is held meanwhile: a package is imported here, and an import waits for the thread that has begun it. That
    one may ask, too: an app that adds its schedules while its own package, which has a kind, is imported.
    """
    if _kept:
        return _kept[GROUP]
    if getattr(_thread, "is_looking", False):
        return _NOTHING  # a package that asks while it is loaded
    _thread.is_looking = True
    try:
        kinds, faults = _look()
    finally:
        _thread.is_looking = False
    found = _Found(kinds, faults)
    if _kept.setdefault(GROUP, found) is found:
        for name, why in faults:
            log.error("the kind of work %r cannot be loaded: %s", name, why)
    return _kept[GROUP]


def _look() -> tuple[dict[str, WorkKind], list[tuple[str, str]]]:
    """The kinds of packages, and what is wrong with the others, by the name that they gave."""
    kinds: dict[str, WorkKind] = {}
    faults: list[tuple[str, str]] = []
    taken = {name: f"the flag --{name.replace('_', '-')} is taken" for name in _flags_taken()}
    for place, distribution in _distributions():
        try:
            entries = list(distribution.entry_points.select(group=GROUP))
        except Exception as error:
            faults.append((place, f"its entry points cannot be read: {one_line(error)}"))
            continue
        for entry in entries:
            try:
                kind = _loaded(entry, {**_OURS, **kinds}, taken)
            except BaseException as error:
                if isinstance(error, (KeyboardInterrupt, GeneratorExit)):
                    raise
                why = " ".join(str(error).split()) if isinstance(error, InvalidInput) else one_line(error)
                faults.append((entry.name, f"{entry.value}: {why}"))
            else:
                kinds[kind.name] = kind
                of_kind = f"is that of {kind.name} work"
                taken |= {flag: f"the flag --{flag.replace('_', '-')} {of_kind}" for flag in kind.flags}
    return kinds, faults


def _loaded(entry: EntryPoint, known: Mapping[str, WorkKind], taken: Mapping[str, str]) -> WorkKind:
    if entry.name in _OURS:
        raise InvalidInput(f"Ostinato has a kind called {entry.name!r}", hint="give it another name")
    if entry.name in known:
        raise InvalidInput(f"another package adds {entry.name!r}", hint="uninstall one of the two")
    kind = entry.load()
    if not isinstance(kind, WorkKind):
        raise InvalidInput(f"it is a {type(kind).__name__}", hint="name a WorkKind")
    if kind.name != entry.name:
        raise InvalidInput(f"its kind is {kind.name!r}", hint="give the entry point the same name")
    check_added(kind)
    for flag in kind.flags:
        if flag in taken:
            raise InvalidInput(taken[flag], hint="give the kind, or the field, another name or flag")
    return kind


def _flags_taken() -> Iterator[str]:
    yield from _TAKEN
    for kind in OUR_KINDS:
        yield from kind.flags
    for field in POLICIES.values():
        yield field.name
        yield field.about.flag


def _distributions() -> Iterator[tuple[str, Distribution]]:
    """The packages that name our group, and where they are. Only the metadata of these is read: that of all takes ten
    times as long, and most who call the command line have none. Of one that is on two places, the first counts."""
    seen: set[str] = set()
    for place in dict.fromkeys(sys.path):
        try:
            names = sorted(os.listdir(place or "."))
        except OSError:
            if os.path.isfile(place):  # an archive
                from importlib.metadata import distributions

                yield from ((place, one) for one in distributions(path=[place]) if _is_first(one.name, seen))
            continue
        for name in names:
            stem, _, suffix = name.rpartition(".")
            if suffix in ("dist-info", "egg-info") and _is_first(stem.partition("-")[0], seen):
                folder = Path(place, name)
                if _names_group(folder):
                    from importlib.metadata import PathDistribution

                    yield str(folder), PathDistribution(folder)


def _is_first(name: str, seen: set[str]) -> bool:
    normal = re.sub(r"[-_.]+", "_", name).lower()
    known = normal in seen
    seen.add(normal)
    return not known


def _names_group(folder: Path) -> bool:
    try:
        return GROUP.encode() in (folder / "entry_points.txt").read_bytes()
    except OSError:
        return False
