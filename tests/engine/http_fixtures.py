"""Fixtures of the tests of HTTP work: a server, an app that may call it, and a call from one to the other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ostinato import Http, Ostinato
from ostinato.models.run import Run
from ostinato.testing import drain
from tests.engine.conftest import MakeApp
from tests.engine.http_server import Caller, Server, serving


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as server:
        yield server


@pytest.fixture
def web(make_app: MakeApp) -> Ostinato:
    """An app that may call this machine."""
    return make_app("sqlite://:memory:", http_allow=("127.0.0.0/8", "::1"))


@pytest.fixture
def call(web: Ostinato) -> Caller:
    """Sends a request and answers with the ended run; without retries, unless they are asked for."""

    def call(url: str, method: str = "GET", *, app: Ostinato | None = None, retry: int = 0, **fields: Any) -> Run:
        run = (app or web).enqueue(Http(method, url, **fields), retry=retry)
        drain(app or web)
        return run.get()

    return call
