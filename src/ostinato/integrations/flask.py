"""Flask: tasks run in the app context, and the engine runs in the processes that serve.

Which processes those are, only a request tells: the reloader's parent, `flask shell` and the master of `gunicorn
--preload` import the same module and serve nothing. So the first request starts the engine, and does not wait for it.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from ostinato.config import read_flag
from ostinato.errors import InvalidInput
from ostinato.logs import get_logger

if TYPE_CHECKING:
    from flask import Flask

__all__ = ["init_flask"]

log = get_logger("ostinato")

_AGAIN_SECONDS = 10.0
"""After a start that failed: not with each request."""


class FlaskScheduler(Protocol):
    """An app of Ostinato."""

    def start(self) -> object: ...


def init_flask(app: FlaskScheduler, contexts: Any, flask_app: Flask) -> None:
    """Put the app into the Flask app, and its tasks (by the TaskContexts of its registry) into the app context of
    that; twice is as once."""
    before: Any = getattr(contexts.enter, "__self__", None)
    contexts.enter = flask_app.app_context
    if flask_app.extensions.get("ostinato") is app:
        return
    if hasattr(before, "import_name"):
        names = (before.import_name, flask_app.import_name)
        log.warning("tasks ran in the app context of Flask app %r; from now on they run in that of %r", *names)
    flask_app.extensions["ostinato"] = app
    flask_app.wsgi_app = _Starting(app, flask_app)  # type: ignore[method-assign]  # as Flask says to wrap it


class _Starting:
    """The WSGI app, which starts the engine with its first request."""

    def __init__(self, app: FlaskScheduler, flask_app: Flask) -> None:
        self._app = app
        self._flask_app = flask_app
        self._wsgi_app = flask_app.wsgi_app
        self._process: int | None = None
        """Where it was started, or will be."""
        self._again_at = 0.0

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
        if self._process != os.getpid() and self._is_wanted():
            self._process = os.getpid()
            threading.Thread(target=self._start, name="ostinato-start", daemon=True).start()
        return self._wsgi_app(environ, start_response)

    def _is_wanted(self) -> bool:
        config = self._flask_app.config
        return not config["TESTING"] and time.monotonic() >= self._again_at and self._is_switched_on()

    def _is_switched_on(self) -> bool:
        """`OSTINATO_ENGINE` is read as OSTINATO_ENABLED is: it may come from a variable, as text."""
        given = self._flask_app.config.get("OSTINATO_ENGINE")
        try:
            return given in (None, "") or read_flag("OSTINATO_ENGINE", given)
        except InvalidInput as error:
            log.error("no engine is started: %s", error)
            self._process = os.getpid()  # once is enough
            return False

    def _start(self) -> None:
        try:
            self._app.start()
        except Exception:
            log.exception("the engine could not be started; a later request tries again")
            self._again_at = time.monotonic() + _AGAIN_SECONDS
            self._process = None
