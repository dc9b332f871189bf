"""What all tests share: real PostgreSQL databases, and the settings of hypothesis."""

from __future__ import annotations

import asyncio
import gc
import inspect
import os
import signal
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import hypothesis
import psycopg
import pytest

from ostinato.stores.sqlite.store import SqliteStore
from ostinato.tuning import DEFAULT_TUNING, Tuning
from tests.databases import QUICK, needs_postgres
from tests.leftovers import leaving_nothing
from tests.ordering import share_out
from tests.postgres_databases import KeptDatabase, fresh_database, migrate
from tests.postgres_server import server_url, stop_server

# The same examples in every run, so that a failure is the change's and not the dice's.
# HYPOTHESIS_PROFILE=explore looks further, with new examples each time.
hypothesis.settings.register_profile(
    "repeatable", deadline=None, derandomize=True, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.register_profile("explore", deadline=None, max_examples=2000, print_blob=True)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))

_FOLDER = pytest.StashKey[Path]()
_SESSION_PID = pytest.StashKey[int]()


def pytest_configure(config: pytest.Config) -> None:
    """The session has one folder for its server; xdist hands it to the workers."""
    # A shell lets what it starts in the background ignore Ctrl-C, and every process of the tests would ignore it too.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    given = getattr(config, "workerinput", None)
    if given is None:
        # A developer's own settings must not reach the tests.
        for name in [n for n in os.environ if n.startswith("OSTINATO_") and not n.startswith("OSTINATO_TEST_")]:
            del os.environ[name]
        config.stash[_FOLDER] = Path(tempfile.mkdtemp(prefix="ostinato-pg-"))
        config.stash[_SESSION_PID] = os.getpid()
    else:
        config.stash[_FOLDER] = Path(given["postgres_folder"])
        config.stash[_SESSION_PID] = given["session_pid"]


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Called by xdist in the controller, for each worker it starts."""
    node.workerinput["postgres_folder"] = str(node.config.stash[_FOLDER])
    node.workerinput["session_pid"] = node.config.stash[_SESSION_PID]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what needs PostgreSQL, if it is to be quick; and give each worker its share of what is slow."""
    if QUICK:
        config.hook.pytest_deselected(items=[item for item in items if needs_postgres(item)])
        items[:] = [item for item in items if not needs_postgres(item)]
    given = getattr(config, "workerinput", None)
    if given is not None:
        items[:] = share_out(items, _folder, given["workercount"])


def _folder(item: pytest.Item) -> str:
    """The folder in tests/ that the test is in."""
    return item.path.relative_to(Path(__file__).parent).parts[0]


def pytest_collection_finish() -> None:
    """What was collected stays to the end: 640,000 objects that the garbage collector need not look at again."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a coroutine test to its end, on a loop of its own and within a bound."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    wanted = inspect.signature(pyfuncitem.obj).parameters
    arguments = {name: pyfuncitem.funcargs[name] for name in wanted}
    asyncio.run(asyncio.wait_for(pyfuncitem.obj(**arguments), 90))
    return True


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput") and _FOLDER in config.stash:
        stop_server(config.stash[_FOLDER])


@pytest.fixture(autouse=True)
def _leaves_nothing_behind() -> Iterator[None]:
    with leaving_nothing():
        yield


@pytest.fixture
def tuning() -> Tuning:
    """Of the apps that fixtures make; `tuned` gives those of one test another."""
    return DEFAULT_TUNING


def tuned(**numbers: Any) -> pytest.MarkDecorator:
    """The test runs with these numbers instead of the usual ones."""
    return pytest.mark.parametrize("tuning", [Tuning(**numbers)], ids=["tuned"])


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of SQLite of which tests get copies, one per worker."""
    path = tmp_path_factory.mktemp("migrated") / "jobs.db"
    with ThreadPoolExecutor(1) as thread:  # a test may ask for it on its own loop
        thread.submit(asyncio.run, migrate(SqliteStore(str(path)))).result()
    return path


@pytest.fixture(scope="session")
def postgres_server(pytestconfig: pytest.Config) -> str:
    """The URL of the session's PostgreSQL server."""
    return server_url(pytestconfig.stash[_FOLDER], pytestconfig.stash[_SESSION_PID])


@pytest.fixture(scope="session")
def postgres_admin(postgres_server: str) -> Iterator[psycopg.Connection[Any]]:
    """A connection that may create and drop databases, one per worker."""
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        yield connection


@pytest.fixture(scope="session")
def kept_database(postgres_admin: psycopg.Connection[Any], postgres_server: str) -> Iterator[KeptDatabase]:
    """What `postgres_url` lends to one test after the other, one per worker."""
    kept = KeptDatabase(postgres_admin, postgres_server)
    yield kept
    kept.drop()


@pytest.fixture
def postgres_url(kept_database: KeptDatabase) -> Iterator[str]:
    """The URL of a database of this test alone, migrated and without a row; any process on this machine can connect."""
    with kept_database.lent() as url:
        yield url


@pytest.fixture
def empty_postgres_url(postgres_admin: psycopg.Connection[Any], postgres_server: str) -> Iterator[str]:
    """The same of a database in which nothing was made yet."""
    with fresh_database(postgres_admin, postgres_server) as url:
        yield url
