"""How a command gets at its database: load the app if one is named, open it, ask it, close it."""

from __future__ import annotations

import contextvars
import importlib
import os
import shlex
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from functools import reduce
from typing import TYPE_CHECKING, Any, TypeVar

from ostinato.cli.console import name_database
from ostinato.cli.options import NO_LOG, NO_TLS, Common, LogFlags, TlsFlags
from ostinato.errors import InvalidInput, NoDatabase

if TYPE_CHECKING:
    import asyncio
    from types import ModuleType

    from ostinato.app import Ostinato
    from ostinato.service.services import Services
    from ostinato.wiring import Container

__all__ = ["OpenDatabase", "database_exists", "load_app", "opened", "os_user", "project_app"]

T = TypeVar("T")

_OTHERS = (
    "name another with --db, OSTINATO_DB or db in ostinato.toml, or create it with 'ostinato up' or "
    "'ostinato db migrate'"
)

project_app: contextvars.ContextVar[Ostinato | None] = contextvars.ContextVar("ostinato_project_app", default=None)
"""The app of the project whose own command this is, such as `manage.py ostinato`."""


class OpenDatabase:
    """An open database, for as long as one command takes."""

    def __init__(self, app: Ostinato, container: Container, runner: asyncio.Runner) -> None:
        self.app = app
        self._container = container
        self._runner = runner

    def ask(self, question: Coroutine[Any, Any, T]) -> T:
        """Carry out a verb of a service and wait for its answer."""
        return self._runner.run(question)

    def with_container(self, use: Callable[[Container], Coroutine[Any, Any, T]]) -> T:
        """Do something with the container itself, on its loop: execute a run in this process.

        Nobody acts in it for the audit log: what the work does is done by code.
        """
        from ostinato.service.audit import acting

        with acting(None):
            return self._runner.run(use(self._container), context=contextvars.copy_context())

    def schedule_name(self, ref: str) -> str:
        """The name of the schedule that is meant: digits are its number, unless one has them as its name."""
        if not (ref.isascii() and ref.isdecimal()):
            return ref
        return self.ask(self.services.schedules.look(ref)).schedule.name

    @property
    def services(self) -> Services:
        return self._container.services

    @property
    def zone(self) -> str:
        """The zone that times are shown and read in."""
        return self._container.settings.tz

    @property
    def switched_off(self) -> str | None:
        """What keeps an engine from being started here; None if nothing does."""
        from ostinato.config import switched_off

        return switched_off(self.app.settings)

    @property
    def now(self) -> datetime:
        from ostinato.clock import from_micros

        return from_micros(self._container.clock.now())


@contextmanager
def opened(
    common: Common, *, create: bool = False, host: str | None = None, port: int | None = None
) -> Iterator[OpenDatabase]:
    """Open the database that the flags, the environment, ostinato.toml or the app name. Only a command that adds
    something creates one: in a wrong folder, any other would find an empty one and say that there is nothing."""
    import asyncio

    app = load_app(common, host=host, port=port)
    from ostinato.cli.log_setup import said_warnings
    from ostinato.models.access import Actor
    from ostinato.service.audit import acting
    from ostinato.trace_context import carrying
    from ostinato.wiring import open_container

    # Before the runner, which takes the context as it is when it begins. A traced script says so by TRACEPARENT.
    with said_warnings(), acting(Actor(os_user(), "cli")), carrying(os.environ), asyncio.Runner() as runner:
        try:
            container = runner.run(open_container(app.settings, app.clock, app.registry, create=create))
        except NoDatabase as error:
            raise NoDatabase(f"{error} ({_named_by(common, app)}); {_OTHERS}") from None
        try:
            blocking = container.services.blocking
            blocking.flags = _named(common.db, common.app)
            if common.app is None and project_app.get() is not None:
                blocking.app = ""
            yield OpenDatabase(app, container, runner)
        finally:
            runner.run(container.close())


def _named_by(common: Common, app: Ostinato) -> str:
    """Why that database was looked for."""
    from ostinato.config import CONFIG_FILE, Settings, load_settings

    if common.db is not None:
        return "named by --db"
    if os.environ.get("OSTINATO_DB", "").strip():
        return "named by OSTINATO_DB"
    default = Settings().db
    if load_settings().db != default:
        return f"named by {CONFIG_FILE} in this folder"
    if app.settings.db != default:
        return "named by the app"
    return "the default in this folder"


def _named(db: str | None, app: str | None) -> str:
    """What a command needs to be about the same database and app, if these were named by flags."""
    from ostinato.config import without_password

    given = {"--db": None if db is None else without_password(db), "--app": app}
    return shlex.join(word for name, value in given.items() if value is not None for word in (name, value))


def database_exists(app: Ostinato) -> bool:
    """Whether the app has a database to open; asking creates none."""
    import asyncio

    from ostinato import wiring

    return asyncio.run(wiring.database_exists(app.settings))


def os_user() -> str:
    """Who is at this command line, as the system knows them."""
    from ostinato.trust import user_name

    return user_name(os.getuid())


def load_app(
    common: Common,
    *,
    slots: int | None = None,
    lanes: dict[str, int] | None = None,
    rates: dict[str, str] | None = None,
    tz: str | None = None,
    host: str | None = None,
    port: int | None = None,
    tls: TlsFlags = NO_TLS,
    log: LogFlags = NO_LOG,
    metrics: str | None = None,
) -> Ostinato:
    """The app that is named, with the settings that were given on the command line; an empty one if none is named."""
    from ostinato.app import Ostinato
    from ostinato.config import load_settings
    from ostinato.timing.zones import check_zone

    given: dict[str, Any] = {
        "db": common.db,
        "slots": slots,
        "lanes": lanes,
        "rates": rates,
        "tz": None if tz is None else check_zone(tz),
        "host": host,
        "port": port,
        "tls_cert": tls.tls_cert,
        "tls_key": tls.tls_key,
        "log_level": log.log_level,
        "log_format": log.log_format,
        "metrics": metrics,
    }
    settings = load_settings(**given)
    name_database(common.db, common.app)
    project = project_app.get() if common.app is None else None
    target = common.app or settings.app
    if project is None and target is None:
        return Ostinato(settings=settings)
    app = project or import_app(str(target))
    if project is None:
        app.settings = replace(app.settings, app=target)
    checked = {name: getattr(settings, name) for name, value in given.items() if value is not None}
    if lanes is not None:
        checked["lanes"] = {**app.settings.lanes, **lanes}
    if rates is not None:
        checked["rates"] = {**app.settings.rates, **{name: settings.rates[name] for name in rates}}
    app.settings = replace(app.settings, **checked)
    return app


def import_app(target: str) -> Ostinato:
    """The Ostinato of `module:attr`; of `module` alone, if it has only one."""
    module_name, _, attribute = target.partition(":")
    module = _import(module_name, target)
    from ostinato.app import Ostinato

    candidates = sorted(name for name, value in vars(module).items() if isinstance(value, Ostinato))
    if not attribute:
        if len(candidates) != 1:
            raise InvalidInput(
                f"--app {target} names no attribute", field="app", hint=_suggest(module_name, candidates)
            )
        attribute = candidates[0]
    try:
        found = reduce(getattr, attribute.split("."), module)
    except AttributeError:
        raise InvalidInput(
            f"--app {target}: module {module_name!r} ({_place(module)}) has no attribute {attribute!r}",
            field="app",
            hint=_suggest(module_name, candidates),
        ) from None
    if not isinstance(found, Ostinato):
        raise InvalidInput(
            f"--app {target} is {type(found).__name__}, not an Ostinato",
            field="app",
            hint=_suggest(module_name, candidates),
        )
    return found


def _import(name: str, target: str) -> ModuleType:
    folder = os.getcwd()
    if not name or name.endswith(".py") or "/" in name:
        hint = f"write {name.removesuffix('.py').strip('./').replace('/', '.') or 'module'}:app"
        raise InvalidInput(f"--app {target} is not module:attr", field="app", hint=hint)
    _require_trust(name, folder)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or name
        if name != missing and not name.startswith(f"{missing}."):
            raise _raised(target, name, error) from error
        raise InvalidInput(
            f"--app {target}: there is no module {missing!r}; looked in {folder} and the installed packages",
            field="app",
            hint="run from the folder that holds it, or install it",
        ) from None
    except Exception as error:  # whatever the user's module does at import is theirs to mend
        raise _raised(target, name, error) from error


def _require_trust(name: str, folder: str) -> None:
    """Before anything of it is executed: the files of the module and of the packages around it, and this folder."""
    from importlib.machinery import PathFinder

    from ostinato.trust import require_trust, require_trusted_folder

    require_trusted_folder(folder, "the folder of the app", "app")
    search = [folder, *sys.path]
    whole = ""
    for part in name.split("."):
        whole = f"{whole}.{part}".lstrip(".")
        try:
            spec = PathFinder.find_spec(whole, search)
        except KeyError:  # folders without an __init__.py within such folders: it looks for them among what is imported
            search = [place for each in search if os.path.isdir(place := os.path.join(each, part))]
        else:
            if spec is None:
                return  # not there, or made by an installed package's own finder: the import tells
            if spec.has_location and spec.origin is not None:
                require_trust(spec.origin, "the app", "app")
            search = list(spec.submodule_search_locations or ())
        for each in search:
            require_trusted_folder(each, "the app's folder", "app")


def _raised(target: str, name: str, error: Exception) -> InvalidInput:
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    place = "" if last is None else f" ({last.tb_frame.f_code.co_filename}, line {last.tb_lineno})"
    return InvalidInput(
        f"--app {target}: importing {name!r} raised {type(error).__name__}: {error}{place}", field="app"
    )


def _place(module: ModuleType) -> str:
    return getattr(module, "__file__", None) or "built in"


def _suggest(module: str, candidates: list[str]) -> str:
    if not candidates:
        return f"make one there: app = Ostinato(), then --app {module}:app"
    return "found there: " + ", ".join(f"{module}:{name}" for name in candidates)
