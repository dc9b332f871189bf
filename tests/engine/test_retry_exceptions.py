"""Which exceptions are tried again: by their classes or names, in threads, on the loop and in processes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ostinato import InvalidInput, Ostinato, Retry, Shell
from ostinato.models.policy import load_policy, make_policy, policy_text
from ostinato.testing import drain
from tests.engine import process_tasks


class Flaky(ConnectionError):
    """What another service raises."""


AGAIN = Retry(3, base=0, on=(TimeoutError, Flaky), never=(BrokenPipeError,))


def attempts(app: Ostinato, error: BaseException, retry: Any = AGAIN) -> tuple[int, str]:
    """How often a function that raises this is tried, and what its run says in the end."""

    @app.task("fails", retry=retry)
    def fails() -> None:
        raise error

    run = fails.enqueue()
    drain(app)
    ended = run.get()
    return ended.attempt, ended.reason or ""


@pytest.mark.parametrize(
    ("error", "expected"),
    [(TimeoutError("x"), 4), (Flaky("x"), 4), (ValueError("x"), 1), (ConnectionError("x"), 1), (BrokenPipeError(), 1)],
)
def test_only_the_exceptions_that_it_names_are_tried_again(app: Ostinato, error: Exception, expected: int) -> None:
    found, reason = attempts(app, error)
    assert found == expected
    said = f"not tried again, because its retry does not cover {type(error).__name__}"
    assert (said in reason) == (expected == 1)


def test_an_exception_is_found_by_what_it_inherits_from_and_never_wins(app: Ostinato) -> None:
    assert attempts(app, Flaky(), Retry(1, base=0, on=(OSError,)))[0] == 2
    assert attempts(app, Flaky(), Retry(1, base=0, on=OSError, never=(ConnectionError,)))[0] == 1
    assert attempts(app, KeyError(), Retry(1, base=0, never="LookupError"))[0] == 1
    assert attempts(app, ValueError(), Retry(1, base=0, never="LookupError"))[0] == 2


def test_a_builtin_is_known_by_all_its_names(app: Ostinato) -> None:
    assert Retry(on=("builtins.TimeoutError", "TimeoutError", TimeoutError)).on == ("TimeoutError",)
    assert Retry(never=("IOError", "builtins.EnvironmentError", "builtins.Exception")).never == ("OSError", "Exception")
    assert Retry(on=("builtins.nothing", "builtins", "print")).on == ("builtins.nothing", "builtins", "print")
    assert attempts(app, TimeoutError("x"), Retry(1, base=0, on=("builtins.TimeoutError",)))[0] == 2
    assert attempts(app, OSError("x"), Retry(1, base=0, never=("builtins.IOError",)))[0] == 1


def test_it_is_stored_by_names_and_says_what_it_said_without_them() -> None:
    policy = make_policy({"retry": AGAIN})
    name = "tests.engine.test_retry_exceptions.Flaky"
    assert (policy.retry.on, policy.retry.never) == (("TimeoutError", name), ("BrokenPipeError",))
    assert load_policy(policy_text(policy)) == policy
    assert '"on"' not in policy_text(make_policy({"retry": 5}))
    assert make_policy({"retry": {"max": 2, "on": ["httpx.ConnectError"]}}).retry.on == ("httpx.ConnectError",)


@pytest.mark.parametrize("wrong", [("not a name",), (3,), (int,), "a..b"])
def test_what_is_no_exception_is_refused(wrong: Any) -> None:
    with pytest.raises(InvalidInput, match=r"retry.on cannot be"):
        Retry(on=wrong)


def test_on_the_loop_and_in_a_process_it_is_the_same(app: Ostinato) -> None:
    @app.task(retry=AGAIN)
    async def on_the_loop(again: bool) -> None:
        await asyncio.sleep(0)
        raise TimeoutError if again else ValueError

    apart = app.task(isolation="process", retry=Retry(1, base=0, on=(LookupError,)))(process_tasks.look_up)
    runs = [
        on_the_loop.enqueue(True),
        on_the_loop.enqueue(False),
        apart.enqueue("KeyError"),
        apart.enqueue("ValueError"),
    ]
    drain(app)
    assert [run.get().attempt for run in runs] == [4, 1, 2, 1]


def test_work_that_raises_nothing_cannot_have_it(app: Ostinato) -> None:
    with pytest.raises(InvalidInput, match="shell work raises no exceptions") as refused:
        app.schedules.add("backup", "daily 03:00", Shell("true"), retry=Retry(2, on=(OSError,)))
    assert refused.value.field == "retry"
    with pytest.raises(InvalidInput, match="shell work raises no exceptions"):
        app.enqueue(Shell("true"), retry={"max": 1, "never": ["ValueError"]})
