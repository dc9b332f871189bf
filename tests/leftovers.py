"""What of the process one test could leave to the next: how logs are set up, who makes spans, folder and variables.

Which tests share a process depends on the number of workers, so the test that would fail for it is another each time.
Here the one that left it behind fails.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from _pytest.logging import LogCaptureHandler

__all__ = ["leaving_nothing", "restored", "restored_logs"]

_LOGGERS = (None, "ostinato", "ostinato.runs")
_PROVIDER = "_TRACER_PROVIDER"


def _logging_state() -> dict[str, tuple[Any, ...]]:
    """Of the root logger and of ours. pytest's own handlers come and go with each phase of a test."""
    found = {}
    for logger in map(logging.getLogger, _LOGGERS):
        handlers = [handler for handler in logger.handlers if not isinstance(handler, LogCaptureHandler)]
        state = (logger.level, logger.disabled, logger.propagate, handlers, list(logger.filters))
        found[f"logger {logger.name}"] = state
    return found


def _state() -> dict[str, Any]:
    # Looked at only where it was imported: most tests have nothing to do with it.
    trace = sys.modules.get("opentelemetry.trace")
    return {
        **_logging_state(),
        "tracer provider": getattr(trace, _PROVIDER, None),
        "folder": os.getcwd(),
        "variables": {name for name in os.environ if name.startswith(("OSTINATO_", "OTEL_", "DJANGO_"))},
    }


@contextmanager
def leaving_nothing() -> Iterator[None]:
    """Fails if what runs in it has changed the process for those that come after."""
    before = _state()
    yield
    after = _state()
    changed = {name: (before[name], after[name]) for name in before if after[name] != before[name]}
    assert not changed, f"left behind in the process (before, after): {changed}"


@contextmanager
def restored_logs() -> Iterator[None]:
    """For code that sets up the logs of its process, such as `ostinato up`: they are put back after it."""
    before = _logging_state()
    try:
        yield
    finally:
        for logger, known in zip(map(logging.getLogger, _LOGGERS), before.values(), strict=True):
            level, logger.disabled, logger.propagate, handlers, logger.filters = known
            logger.setLevel(level)
            pytests = [handler for handler in logger.handlers if isinstance(handler, LogCaptureHandler)]
            logger.handlers[:] = [*handlers, *pytests]


@contextmanager
def restored() -> Iterator[None]:
    """For code that sets up its process, such as a guide's: the logs and the tracer provider are put back after it."""
    from opentelemetry import trace

    provider, once = getattr(trace, _PROVIDER), trace._TRACER_PROVIDER_SET_ONCE
    trace._TRACER_PROVIDER_SET_ONCE = type(once)()
    try:
        with restored_logs():
            yield
    finally:
        if (made := getattr(trace, _PROVIDER)) is not provider:
            made.shutdown()
        setattr(trace, _PROVIDER, provider)
        trace._TRACER_PROVIDER_SET_ONCE = once
