"""What running work sees of its run; the registry that finds tasks; outcomes."""

from __future__ import annotations

import asyncio
import functools
import math
import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from ostinato import Ostinato
from ostinato.clock import to_micros
from ostinato.errors import Abort, InvalidInput, NotFound, NotRunning, Snooze
from ostinato.execution.context import RunContext, current_run
from ostinato.execution.outcome import OutcomeKind, raised, returned
from ostinato.execution.registry import Check, Registry
from ostinato.execution.secrets import Mask
from ostinato.execution.threads import WorkerThreads
from ostinato.models.ids import RunId
from ostinato.models.output import output_text
from ostinato.testing import drain
from tests.rows import claimed_run

DUE = datetime(2026, 3, 1, 9, tzinfo=UTC)


def context(key: str | None = None, told: list[RunContext] | None = None) -> RunContext:
    due = to_micros(DUE)
    claimed = claimed_run(id=RunId(5), due_at=due, ready_at=due, attempt=2, schedule="nightly", key=key)
    return RunContext(claimed, told.append if told is not None else lambda _: None)


def test_outside_of_a_task_there_is_no_current_run() -> None:
    with pytest.raises(NotRunning, match="works only inside a running task"):
        current_run()


def test_it_says_who_it_is() -> None:
    run = context()
    assert (run.id, run.schedule, run.due_at, run.attempt, run.key) == (5, "nightly", DUE, 2, "run-5")
    assert context("order-7").key == "order-7"


def test_what_it_reports_is_taken_once() -> None:
    told: list[RunContext] = []
    run = context(told=told)
    assert not run.has_report
    run.progress(3, 10, "three of ten")
    run.count("copied")
    run.count("copied", 4)
    run.count("bytes", 1.5)
    run.log("a line")
    assert told == [run], "one wake-up serves all that is new"
    progress, totals, output = run.take_report()
    assert progress is not None
    assert totals is not None
    assert msgspec.json.decode(progress) == {"done": 3, "total": 10, "text": "three of ten"}
    assert msgspec.json.decode(totals) == {"copied": 5, "bytes": 1.5}
    assert output_text(output) == "a line\n"
    assert run.take_report()[2] == []
    run.log("another\n")
    assert len(told) == 2
    assert output_text(run.take_report()[2]) == "another\n"


def test_a_total_needs_a_name() -> None:
    with pytest.raises(InvalidInput, match="needs a name"):
        context().count("")


class NumberLike:
    """As numpy's: no int, but it can say which one it is."""

    def __index__(self) -> int:
        return 3

    def __float__(self) -> float:
        return 3.0


def test_whatever_is_a_number_counts_as_one() -> None:
    run = context()
    run.progress(NumberLike(), Decimal("4.5"))  # type: ignore[arg-type]
    run.count("rows", NumberLike())  # type: ignore[arg-type]
    run.count("rows", 2)
    run.count("bytes", 10**30)
    assert run.take_report()[:2] == ('{"done":3,"total":4.5,"text":""}', '{"rows":5,"bytes":1e30}')


@pytest.mark.parametrize("wrong", ["three", None, object(), math.nan, math.inf, 10**400])
def test_what_is_no_finite_number_is_refused_where_it_is_reported(wrong: Any) -> None:
    run = context()
    with pytest.raises(InvalidInput, match=r"total 'rows' cannot be .*give a finite number"):
        run.count("rows", wrong)
    with pytest.raises(InvalidInput, match=r"progress.done cannot be"):
        run.progress(wrong)
    assert run.totals == {}


def test_a_total_cannot_grow_beyond_all_numbers() -> None:
    run = context()
    run.count("big", 1.5e308)
    with pytest.raises(InvalidInput, match="total 'big' cannot be inf"):
        run.count("big", 1.5e308)


def test_a_total_that_is_set_wrongly_stays_what_it_was() -> None:
    run = context()
    run.count("copied", 5)
    run.count("7", 5)
    for name, value in (("copied", "five"), ("copied", math.nan), (7, 1)):
        with pytest.raises(InvalidInput):
            run.set_total(name, value)  # type: ignore[arg-type]
    assert run.totals == {"copied": 5, "7": 5}
    run.set_total("copied", 3)
    assert run.totals["copied"] == 3


def test_text_that_no_database_can_hold_is_reported_readable() -> None:
    run = context()
    run.progress(1, text="caf\udce9")
    run.count("caf\udce9")
    run.log("a\0b")
    progress, totals, output = run.take_report(final=True)
    assert progress == '{"done":1,"total":null,"text":"caf\\\\udce9"}'
    assert totals == '{"caf\\\\udce9":1}'
    assert output_text(output) == "a\\x00b\n"


def test_output_may_be_bytes_as_they_come() -> None:
    run = context()
    for byte in "grün ✓\n".encode() + b"caf\xe9\n":
        run.write(bytes([byte]))
    assert output_text(run.take_report(final=True)[2]) == "grün ✓\ncaf\\xe9\n"


def test_what_it_says_of_itself_shows_no_secret() -> None:
    run = context()
    run.mask = Mask(["hunter2", "1234"])
    run.progress(1234, text="the password is hunter2")
    run.log("hunter2")
    run.count("files", 1234)
    run.count("of hunter2", 2)
    progress, totals, output = run.take_report(final=True)
    assert progress == '{"done":1234,"total":null,"text":"the password is ***"}'
    assert totals == '{"files":1234,"of ***":2}'
    assert output_text(output) == "***\n"


def test_looking_at_cancelled_is_remembered_only_when_it_was_so() -> None:
    run = context()
    assert (run.cancelled, run.saw_cancel) == (False, False)
    run.request_cancel()
    assert run.saw_cancel is False
    assert (run.cancelled, run.saw_cancel) == (True, True)


# The registry.


def plain(a: int) -> int:
    return a


def wants_context(a: int, run: RunContext) -> None: ...


async def wants_nothing() -> None: ...


def test_a_task_is_found_by_its_name_and_an_unknown_one_says_which_there_are() -> None:
    registry = Registry()
    registry.add_task("one", plain, {})
    registry.add_task("two", plain, {})
    assert registry.task("one").function is plain
    with pytest.raises(NotFound, match="task 'three' is not registered here; known tasks: one, two"):
        registry.task("three")


def test_a_name_serves_one_function_and_the_same_again_is_no_error() -> None:
    registry = Registry()
    registry.add_task("job", plain, {})
    registry.add_task("job", plain, {})
    with pytest.raises(
        InvalidInput,
        match=r"'job' is already .*plain; it cannot also be .*wants_context; .*'test_context.job'",
    ):
        registry.add_task("job", wants_context, {})


def test_the_parameter_annotated_run_context_is_found() -> None:
    registry = Registry()
    found = registry.add_task("with", wants_context, {}).context_parameter
    assert found is not None
    assert found.name == "run"
    assert registry.add_task("without", plain, {}).context_parameter is None


def wants_it_perhaps(a: int, run: RunContext | None = None) -> None: ...


def wants_it_as_a_type_checker_sees_it(run: Any) -> None: ...


wants_it_as_a_type_checker_sees_it.__annotations__["run"] = "Optional[RunContext]"  # where Optional is not imported


@pytest.mark.parametrize(
    ("function", "name", "position"),
    [
        (wants_it_perhaps, "run", 1),
        (wants_it_as_a_type_checker_sees_it, "run", 0),
        (functools.partial(wants_context, 1), "run", 0),
        (functools.partial(wants_context, a=1), "run", None),
    ],
)
def test_it_is_found_in_any_form(function: Callable[..., Any], name: str, position: int | None) -> None:
    found = Registry().add_task("with", function, {}).context_parameter
    assert found is not None
    assert (found.name, found.position) == (name, position)


def test_a_context_with_a_default_is_filled_when_it_runs_and_left_alone_in_a_plain_call() -> None:
    app = Ostinato("sqlite://:memory:")
    given: list[RunContext | None] = []

    @app.task
    def job(a: int, run: RunContext | None = None) -> None:
        given.append(run)

    job(1)
    job(1, None)
    job.enqueue(1)
    drain(app)
    app.stop()
    assert given[:2] == [None, None]
    assert isinstance(given[2], RunContext)


@pytest.mark.parametrize("text", ["sys.Nope", "no python at all", "1 / 0", "Undefined"])
def test_an_annotation_that_cannot_be_resolved_does_not_hide_the_others(text: str) -> None:
    def function(run: RunContext, a: int) -> None: ...

    function.__annotations__["a"] = text
    definition = Registry().add_task("late", function, {})
    assert definition.context_parameter is not None
    assert definition.signature is not None
    assert definition.signature.encode([1], {}) == ([1], {})


def test_a_task_without_a_name_of_its_own_needs_one() -> None:
    app = Ostinato("sqlite://:memory:")
    for function, what in ((lambda: 1, "a lambda"), (functools.partial(plain, 1), "a partial")):
        with pytest.raises(InvalidInput, match=f"{what} has no name of its own, and a task needs one"):
            app.task(function)
        with pytest.raises(InvalidInput, match=f"{what} has no name of its own, and a task needs one"):
            app.task(retry=1)(function)
        app.task(what)(function)
    with pytest.raises(InvalidInput, match=r"a partial, which a process of its own cannot import; define a function"):
        app.task("apart", isolation="process")(functools.partial(plain, 1))


def test_a_method_is_refused_where_it_is_decorated() -> None:
    registry = Registry()

    class Shop:
        def close(self, till: int) -> int:
            return till

        @staticmethod
        def open(till: int) -> int:
            return till

    with pytest.raises(InvalidInput, match="task 'close' is a method of Shop: there is no object to call it on"):
        registry.add_task("close", Shop.close, {})
    registry.add_task("open", Shop.open, {})
    registry.add_task("bound", Shop().close, {})


def test_coroutine_functions_are_known_as_such() -> None:
    registry = Registry()
    assert registry.add_task("async", wants_nothing, {}).is_async
    assert not registry.add_task("sync", plain, {}).is_async


def test_a_wrong_isolation_is_refused() -> None:
    with pytest.raises(InvalidInput, match="isolation cannot be 'container'"):
        Registry().add_task("job", plain, {}, "container")  # type: ignore[arg-type]


# Outcomes.


def test_what_returns_is_json() -> None:
    assert returned(None).result is None
    assert returned({"a": [1, 2.5, None, "x"]}).result == '{"a":[1,2.5,null,"x"]}'
    outcome = returned(object())
    assert outcome.kind is OutcomeKind.ABORTED
    assert "object that is not JSON" in (outcome.reason or "")


def test_what_raises_is_told_in_a_line_and_in_full() -> None:
    try:
        raise ValueError("first line\nsecond line")
    except ValueError as error:
        outcome = raised(error)
    assert (outcome.kind, outcome.reason) == (OutcomeKind.FAILED, "ValueError: first line second line")
    assert "Traceback" in (outcome.error or "")


def test_a_story_has_a_bounded_length() -> None:
    outcome = raised(ValueError("x" * 10**6))
    assert len(outcome.reason or "") <= 300
    assert len(outcome.error or "") < 20_000


def test_abort_and_snooze_are_not_failures() -> None:
    assert raised(Abort("closed")).kind is OutcomeKind.ABORTED
    snoozed = raised(Snooze("5m", "later"))
    assert (snoozed.kind, snoozed.delay, snoozed.reason) == (OutcomeKind.SNOOZED, timedelta(minutes=5), "later")


def test_a_snooze_of_a_wrong_length_is_told() -> None:
    outcome = raised(Snooze("soon"))
    assert outcome.kind is OutcomeKind.ABORTED
    assert "'soon' is not a duration" in (outcome.reason or "")


def test_exiting_the_interpreter_is_a_failure_of_the_task() -> None:
    assert raised(SystemExit(3)).reason == "SystemExit: 3"


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


class HalfMade(Snooze):
    def __init__(self) -> None: ...


@pytest.mark.parametrize(("error", "name"), [(Unspeakable(), "Unspeakable"), (HalfMade(), "HalfMade")])
def test_an_error_that_cannot_be_shown_is_still_a_failure(error: Exception, name: str) -> None:
    outcome = raised(error)
    assert outcome.kind is OutcomeKind.FAILED
    assert name in (outcome.reason or "")
    assert "cannot be shown" in (outcome.reason or "")


def test_a_result_with_a_lone_surrogate_is_told() -> None:
    outcome = returned({"name": "caf\udce9"})
    assert outcome.kind is OutcomeKind.ABORTED
    assert "surrogates not allowed" in (outcome.reason or "")


# Checks.


async def hangs() -> bool:
    await asyncio.Event().wait()
    return True


async def exits() -> bool:
    raise SystemExit(3)


def stops() -> bool:
    raise StopIteration


@pytest.mark.parametrize(
    ("check", "reason"),
    [
        (hangs, "took longer than 0.05s"),
        (lambda: threading.Event().wait(20), "took longer than 0.05s"),
        (exits, "SystemExit: 3"),
        (lambda: sys.exit(3), "SystemExit: 3"),
        (stops, "StopIteration"),
        (lambda: "caf\udce9", "caf\\udce9"),
    ],
)
def test_a_check_that_misbehaves_has_failed(check: Check, reason: str) -> None:
    registry = Registry(check_seconds=0.05 if "longer" in reason else 30)
    registry.add_check("disk", check)
    assert asyncio.run(registry.failed_checks(["disk"])) == {"disk": reason}


# Worker threads.


async def submitted(workers: WorkerThreads) -> int:
    answer: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    workers.submit(lambda: 1, answer.set_result)
    return await asyncio.wait_for(answer, 10)


async def test_a_completion_that_raises_does_not_lose_the_next(caplog: pytest.LogCaptureFixture) -> None:
    workers = WorkerThreads()
    both = threading.Barrier(2)
    answer: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    raised = asyncio.Event()

    def broken(_: object) -> None:
        raised.set()
        raise RuntimeError("broken")

    workers.submit(lambda: both.wait(10), broken)
    workers.submit(lambda: both.wait(10), lambda _: answer.set_result(1))
    # Either may come first.
    assert await asyncio.wait_for(answer, 10) == 1
    await asyncio.wait_for(raised.wait(), 10)
    assert workers.busy == 0
    assert "a completion failed" in caplog.text


class SlowLock:
    """Lets the other threads go on whenever the loop's thread has just let go of it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop = threading.get_ident()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()
        if threading.get_ident() == self._loop:
            time.sleep(0.2)


async def test_a_job_is_run_though_the_idle_thread_gives_up_at_that_moment() -> None:
    workers = WorkerThreads(idle_seconds=0.05)
    await submitted(workers)
    workers._lock = SlowLock()  # type: ignore[assignment]
    assert await submitted(workers) == 1


async def test_a_thread_that_cannot_be_made_leaves_no_job_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    workers = WorkerThreads()
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError, match="can't start new thread"):
            workers.submit(lambda: 1, print)
    assert workers.busy == 0
    assert await submitted(workers) == 1
