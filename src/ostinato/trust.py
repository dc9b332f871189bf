"""Whose files are used: those of root and of this user, that nobody else may write; others after a word of the user's.

A database names commands to run, settings name an app to import: a stranger's file in a shared folder must not be taken
for one's own. As git does it with safe.directory. config.py, cli/open_database.py and the SQLite store ask before
they read.
"""

from __future__ import annotations

import grp
import os
import pwd
import shlex
import site
import stat
import sysconfig
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from ostinato.errors import InvalidInput

__all__ = [
    "VARIABLE",
    "owners",
    "require_trust",
    "require_trusted_database",
    "require_trusted_folder",
    "trusted_places",
    "user_name",
]

VARIABLE = "OSTINATO_TRUST"
"""Paths that are trusted with all that is below them, separated as in PATH; `*` is everything."""


def require_trust(path: str | Path, what: str, field: str) -> None:
    """InvalidInput if a stranger could have made or changed this file, or put another in its place.

    What a link leads to is judged, and where the link is. A file that is not there is judged by its folder.
    """
    for place in dict.fromkeys((os.path.abspath(path), os.path.realpath(path))):
        _require(place, what, field, _why_not(place, follow=False))
        _require(place, what, field, _why_not(os.path.dirname(place)))


def require_trusted_database(path: str) -> None:
    """The same for an SQLite file and for those beside it. Nothing is opened: to close it would drop SQLite's locks."""
    require_trust(path, "the database", "db")
    real = os.path.realpath(path)
    for beside in (f"{real}-wal", f"{real}-shm", f"{real}-journal"):
        _require(real, "the database", "db", _why_not(beside, follow=False, name=beside))


def require_trusted_folder(path: str, what: str, field: str) -> None:
    """The same for a folder from which anything may be imported: nobody else may even add a file to it."""
    real = os.path.realpath(path)
    _require(real, what, field, _why_not(real, sticky=False))


def trusted_places() -> list[str]:
    """What the user trusts, whoever owns it: absolute paths, or `*`.

    InvalidInput for a relative one: it would trust another place in each folder that a command is called from.
    """
    places = [os.path.expanduser(place) for place in os.environ.get(VARIABLE, "").split(os.pathsep) if place]
    for place in places:
        if place != "*" and not os.path.isabs(place):
            hint = f"give whole paths, as in {VARIABLE}=/srv/jobs:/srv/other"
            raise InvalidInput(f"{VARIABLE} cannot hold {place!r}, which is relative", field=VARIABLE, hint=hint)
    return places


def _require(place: str, what: str, field: str, why: str | None) -> None:
    if why is not None and not _is_allowed(place):
        raise InvalidInput(
            f"{what} {place} is not trusted: {why}",
            field=field,
            hint=f"if you trust it: export {VARIABLE}={shlex.quote(place)}",
        )


def _is_allowed(place: str) -> bool:
    named = trusted_places()
    if "*" in named or any(_is_below(place, os.path.realpath(each)) for each in named):
        return True
    return any(_is_below(place, each) for each in _installed())


def _is_below(place: str, folder: str) -> bool:
    return place == folder or place.startswith(folder.rstrip("/") + "/")


@cache
def _installed() -> tuple[str, ...]:
    """Where the packages of this interpreter are: who can write there has it already."""
    places = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    return tuple(os.path.realpath(place) for place in (*places, *site.getsitepackages()) if place)


def _why_not(path: str, *, follow: bool = True, sticky: bool = True, name: str = "it") -> str | None:
    """Why it is not trusted; None if it is, or is not there. `name` is what the sentence calls a file."""
    try:
        found = os.stat(path, follow_symlinks=follow)
    except OSError:
        return None  # whoever opens it says what is wrong
    if stat.S_ISDIR(found.st_mode):
        name = path
    if found.st_uid not in owners():
        return f"{name} belongs to {user_name(found.st_uid)}"
    if stat.S_ISLNK(found.st_mode) or (sticky and stat.S_ISDIR(found.st_mode) and found.st_mode & stat.S_ISVTX):
        return None  # in a sticky folder, files can be replaced by their owner alone
    if found.st_mode & stat.S_IWOTH:
        return f"everybody may write {name}"
    if found.st_mode & stat.S_IWGRP and (other := next(_others_in(found.st_gid), None)) is not None:
        return f"{other} may write {name}, by its group"
    return None


def owners() -> set[int]:
    """Root and this user; for root by sudo also who called it, whose files those are."""
    found = {0, os.geteuid()}
    if os.geteuid() == 0 and (caller := os.environ.get("SUDO_UID", "")).isdigit():
        found.add(int(caller))
    return found


def _others_in(group: int) -> Iterator[str]:
    """Members of a group that are not trusted anyway."""
    trusted = owners()
    try:
        members = grp.getgrgid(group).gr_mem
    except KeyError:  # a number without a name has no members that anybody knows
        members = []
    for name in members:
        try:
            if pwd.getpwnam(name).pw_uid not in trusted:
                yield name
        except KeyError:
            continue
    for each in pwd.getpwall():
        if each.pw_gid == group and each.pw_uid not in trusted:
            yield each.pw_name


def user_name(uid: int) -> str:
    """A user as the system knows them."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:  # a container may run as a number that has no name
        return f"uid {uid}"
