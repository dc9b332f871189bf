"""Arguments and results that are more than JSON: they arrive as they were sent, or are refused where they are given."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal
from uuid import UUID

import pytest

from ostinato import (
    Cause,
    Function,
    InvalidInput,
    NotExecuted,
    Ostinato,
    Run,
    RunCancelled,
    RunFailed,
    RunState,
    ScheduleSpec,
    WaitTimeout,
)
from ostinato.errors import NotLoadable
from ostinato.testing import FakeClock, drain
from tests.engine import typed_tasks
from tests.engine.conftest import MakeApp
from tests.engine.typed_tasks import Colour, Company, Customer, Later, Order, Parcel, Place

NOW = datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC)
ID = UUID("12345678-1234-5678-1234-567812345678")
ORDER = Order(ID, Decimal("1.10"), NOW)
VALUES = [
    (typed_tasks.take_datetime, NOW),
    (typed_tasks.take_date, date(2026, 1, 2)),
    (typed_tasks.take_timedelta, timedelta(days=1, seconds=0.5)),
    (typed_tasks.take_uuid, ID),
    (typed_tasks.take_decimal, Decimal("1.10")),
    (typed_tasks.take_enum, Colour.RED),
    (typed_tasks.take_bytes, b"\x00\xff"),
    (typed_tasks.take_path, Path("/tmp/x")),
    (typed_tasks.take_dataclass, ORDER),
    (typed_tasks.take_struct, Parcel(Colour.BLUE, [ORDER], {"any": [1, None]})),
    (typed_tasks.take_attrs, Place(Path("x"))),
    (typed_tasks.take_pydantic, Customer(name="Ada", born=date(1815, 12, 10))),
    (typed_tasks.take_models, Company(vat="X1")),
    (typed_tasks.take_list, [ID, ID]),
    (typed_tasks.take_dict, {"a": Decimal("0.1")}),
    (typed_tasks.take_optional, Later(Colour.RED)),
    (typed_tasks.take_optional, None),
    (typed_tasks.take_set, {1, 2}),
]


@pytest.mark.parametrize(("function", "value"), VALUES, ids=lambda each: getattr(each, "__name__", ""))
def test_a_value_arrives_as_it_was_sent(memory_app: Ostinato, function: Callable[[Any], str], value: Any) -> None:
    handle = memory_app.task("take")(function).enqueue(value)
    drain(memory_app)
    assert handle.result() == typed_tasks.same(value)


def test_it_arrives_in_a_process_of_its_own_too(memory_app: Ostinato) -> None:
    parcel = Parcel(Colour.BLUE, [ORDER])
    handle = memory_app.task("take", isolation="process")(typed_tasks.take_struct).enqueue(parcel)
    drain(memory_app)
    assert handle.result() == typed_tasks.same(parcel)


def test_it_is_stored_as_plain_json(app: Ostinato) -> None:
    task = app.task("take")(typed_tasks.take_struct)
    handle = task.enqueue(value=Parcel(Colour.BLUE, [ORDER]))
    work = handle.get().work
    assert isinstance(work, Function)
    assert work.kwargs == {
        "value": {
            "colour": "blue",
            "orders": [{"id": str(ID), "price": "1.10", "at": "2026-01-02T03:04:05.000678Z"}],
            "more": None,
        }
    }
    drain(app)
    assert handle.result().startswith("Parcel")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ((("tomorrow",), {}), "argument 'when' of task 'job' does not fit datetime"),
        (((NOW, "x"), {}), "argument 'count' of task 'job' does not fit int"),
        (((NOW,), {"count": 1.5}), "argument 'count' of task 'job' does not fit int"),
        (((), {}), "task 'job' needs the argument 'when'"),
        (((NOW, 1, 2, 3), {}), "task 'job' takes at most 3 positional arguments, not 4"),
        (((NOW,), {"cuont": 1}), "task 'job' takes no argument 'cuont'; it takes when, count, loose"),
        (((NOW,), {"when": NOW}), "task 'job' is given the argument 'when' twice"),
        (((NOW, 1, NOW), {}), "argument 'loose' of task 'job' is a datetime, which is not JSON, and its parameter has"),
        (((NOW, 1, [{"a": ID}]), {}), "argument 'loose' of task 'job' has a UUID, which is not JSON"),
        (((NOW, 1, Colour.RED), {}), "argument 'loose' of task 'job' is a Colour, which is not JSON"),
        (((NOW, 1, {1: 2}), {}), "argument 'loose' of task 'job' has the key 1, which is not text"),
        (((NOW, 1, float("nan")), {}), "argument 'loose' of task 'job' is nan, which is not a number in JSON"),
        (((NOW, 1, [float("inf")]), {}), "argument 'loose' of task 'job' has inf, which is not a number in JSON"),
    ],
)
def test_a_wrong_call_is_refused_where_it_is_made(memory_app: Ostinato, call: Any, words: str) -> None:
    def job(when: datetime, count: int = 1, loose=None) -> None: ...  # type: ignore[no-untyped-def]

    job.__annotations__ = {"when": datetime, "count": int}
    task = memory_app.task("job")(job)
    args, kwargs = call
    with pytest.raises(InvalidInput, match=words):
        task.enqueue(*args, **kwargs)
    with pytest.raises(InvalidInput, match=words):
        task.enqueue_many([task.call(*args, **kwargs)])
    with pytest.raises(InvalidInput, match=words):
        memory_app.enqueue(Function("job", list(args), kwargs))
    with pytest.raises(InvalidInput, match=words):
        memory_app.schedules.add("job", "every 1h", Function("job", list(args), kwargs))
    assert list(memory_app.runs.list()) == []


def test_what_json_has_for_a_type_is_taken_for_it(memory_app: Ostinato) -> None:
    """A shell, a page or another language has only JSON."""
    memory_app.task("take")(typed_tasks.take_dataclass)
    handle = memory_app.enqueue(Function("take", [{"id": str(ID), "price": "1.10", "at": NOW.isoformat()}]))
    drain(memory_app)
    assert handle.result() == typed_tasks.same(ORDER)


def test_a_part_that_would_arrive_as_something_else_is_refused(memory_app: Ostinato) -> None:
    task = memory_app.task("take")(typed_tasks.take_struct)
    with pytest.raises(InvalidInput, match="has a datetime, which would arrive as a str"):
        task.enqueue(Parcel(Colour.RED, [], more=NOW))
    with pytest.raises(InvalidInput, match="has an Order, which would arrive as a dict"):
        task.enqueue(Parcel(Colour.RED, [], more=[ORDER]))


def test_an_annotation_that_only_a_type_checker_resolves_leaves_plain_json(memory_app: Ostinato) -> None:
    task = memory_app.task("take")(typed_tasks.take_unresolvable)
    handle = task.enqueue({"plain": 1})
    drain(memory_app)
    assert handle.result() == "dict {'plain': 1}"
    with pytest.raises(InvalidInput, match="the annotation OnlyChecked cannot be resolved"):
        task.enqueue(NOW)


def test_an_annotation_that_nothing_converts_leaves_plain_json(memory_app: Ostinato) -> None:
    def job(value: list[threading.Event]) -> str:
        return typed_tasks.same(value)

    task = memory_app.task("job")(job)
    handle = task.enqueue([{"plain": 1}])  # type: ignore[list-item]
    drain(memory_app)
    assert handle.result() == "list [{'plain': 1}]"
    with pytest.raises(InvalidInput, match="values of its annotation, Event, cannot be made of JSON"):
        task.enqueue([threading.Event()])


def test_a_task_that_is_not_known_here_gets_plain_json(memory_app: Ostinato) -> None:
    memory_app.enqueue(Function("elsewhere", [1, "x"], {"any": [None, 1.5]}))
    with pytest.raises(InvalidInput, match="is a datetime, which is not JSON, and its task is not known here"):
        memory_app.enqueue(Function("elsewhere", [NOW]))


@pytest.mark.parametrize("isolation", ["none", "process"])
def test_a_value_that_no_longer_fits_fails_its_run_once_and_says_so(make_app: MakeApp, db: str, isolation: Any) -> None:
    before = make_app(db)
    before.task("take", retry=3)(lambda value: value)
    run = before.runs.get(before.enqueue(Function("take", ["tomorrow"])).id)
    before.stop()
    after = make_app(db)
    after.task("take", retry=3, isolation=isolation)(typed_tasks.take_datetime)
    drain(after)
    ended = after.runs.get(run.id)
    assert (ended.state, ended.cause, ended.attempt) == (RunState.FAILED, Cause.BAD_ARGUMENTS, 1)
    assert ended.reason is not None
    assert ended.reason.startswith("argument 'value' of task 'take' does not fit datetime: ")


def test_a_parameter_that_was_added_fails_what_was_queued_before(make_app: MakeApp, db: str) -> None:
    before = make_app(db)
    id = before.task("job")(lambda: None).enqueue().id
    before.stop()
    after = make_app(db)
    after.task("job", retry=3)(lambda now_needed: now_needed)
    drain(after)
    ended = after.runs.get(id)
    assert (ended.state, ended.cause, ended.attempt) == (RunState.FAILED, Cause.BAD_ARGUMENTS, 1)
    assert ended.reason == "task 'job' needs the argument 'now_needed'"


def test_a_declared_schedule_of_a_function_that_needs_arguments_is_refused(memory_app: Ostinato) -> None:
    with pytest.raises(InvalidInput, match=r"task 'job' cannot be scheduled here: .* it needs 'folder'"):

        @memory_app.task("job", schedule="every 1h")
        def refused(folder: str, depth: int = 1) -> None: ...

    assert (memory_app.tasks.list(), dict(memory_app.declared)) == ([], {})

    @memory_app.task("job")
    def job(folder: str, depth: int = 1) -> None: ...

    with pytest.raises(InvalidInput, match="task 'job' needs the argument 'folder'"):
        memory_app.schedules.add("job", "every 1h", "job")
    with pytest.raises(InvalidInput, match="task 'job' needs the argument 'folder'"):
        memory_app.schedules.add_many([ScheduleSpec("job", "every 1h", "job")])
    memory_app.schedules.add("job", "every 1h", Function("job", ["/tmp"]))


def test_a_message_is_converted_as_its_task_says_of_its_payloads(memory_app: Ostinato, fake_clock: FakeClock) -> None:
    def take(payloads: list[Order]) -> str:
        return typed_tasks.same(payloads)

    memory_app.task("take")(take)
    memory_app.sessions.send("dm", ORDER, task="take")
    handle = memory_app.sessions.send("dm", ORDER, task="take")
    with pytest.raises(InvalidInput, match="argument 'payloads' of task 'take' does not fit") as refused:
        memory_app.sessions.send("dm", {"id": 7}, task="take")
    assert refused.value.field == "payload"
    fake_clock.advance("1s")
    drain(memory_app)
    assert handle.result() == typed_tasks.same([ORDER, ORDER])


def test_a_result_comes_back_as_its_annotation_says(memory_app: Ostinato) -> None:
    parcel = Parcel(Colour.RED, [ORDER])
    customer = Customer(name="Ada", born=date(1815, 12, 10))
    first = memory_app.task("echo")(typed_tasks.echo).enqueue(parcel)
    task = memory_app.task("echo_async")(typed_tasks.echo_async)
    second = task.enqueue(customer)
    third = memory_app.task("apart", isolation="process")(typed_tasks.echo).enqueue(parcel)
    drain(memory_app)
    assert (first.result(), second.result(), third.result()) == (parcel, customer, parcel)
    assert first.get().result["orders"][0]["id"] == str(ID), "the row is JSON"
    assert asyncio.run(task.aio.result(second.id)) == customer


@pytest.mark.parametrize("isolation", ["none", "process"])
def test_a_result_that_does_not_fit_its_annotation_fails_its_run_once(memory_app: Ostinato, isolation: Any) -> None:
    handle = memory_app.task("lie", isolation=isolation, retry=3)(typed_tasks.lie).enqueue()
    drain(memory_app)
    with pytest.raises(RunFailed, match="its result does not fit int: Expected `int`, got `str`") as failed:
        handle.result()
    assert (failed.value.cause, handle.get().attempt, handle.get().result) == (Cause.ABORTED, 1, None)


def test_a_result_of_older_code_that_does_not_fit_is_told_to_who_asks(make_app: MakeApp, db: str) -> None:
    before = make_app(db)
    id = before.task("lie")(lambda: "text").enqueue().id
    drain(before)
    before.stop()
    task = make_app(db).task("lie")(typed_tasks.lie)
    with pytest.raises(NotLoadable, match="the result of task 'lie' does not fit its annotation int"):
        asyncio.run(task.aio.result(id))


def test_a_result_without_annotation_is_what_json_makes_of_it(memory_app: Ostinato) -> None:
    handle = memory_app.task("now")(lambda: {"at": NOW, "colours": {Colour.RED}}).enqueue()
    drain(memory_app)
    assert handle.result() == {"at": "2026-01-02T03:04:05.000678Z", "colours": ["red"]}


def test_text_for_bytes_is_refused_from_python_and_is_base64_from_json(memory_app: Ostinato) -> None:
    task = memory_app.task("take")(typed_tasks.take_bytes)
    with pytest.raises(InvalidInput, match="argument 'value' of task 'take' is text"):
        task.enqueue("AP8=")  # type: ignore[arg-type]
    handle = memory_app.enqueue(Function("take", ["AP8="]))
    drain(memory_app)
    assert handle.result() == typed_tasks.same(b"\x00\xff")


def test_text_that_cannot_be_stored_is_refused_by_the_place_of_its_argument(memory_app: Ostinato) -> None:
    task = memory_app.task("job")(lambda a, b: None)
    with pytest.raises(InvalidInput, match=r"argument 2 of task 'job' is not JSON: .*surrogates not allowed"):
        task.enqueue("fine", "\ud800")
    with pytest.raises(InvalidInput, match="argument 'b' of task 'job' is not JSON"):
        task.enqueue("fine", b="\ud800")


@pytest.mark.parametrize("isolation", ["none", "process"])
def test_nan_cannot_be_a_result(memory_app: Ostinato, isolation: Any) -> None:
    handle = memory_app.task("nan", isolation=isolation, retry=3)(typed_tasks.not_a_number).enqueue()
    drain(memory_app)
    reason = r"returned a float that is not JSON \(nan is not a number in JSON\); return a finite number, or None$"
    with pytest.raises(RunFailed, match=reason) as failed:
        handle.result()
    assert failed.value.cause == Cause.ABORTED
    assert handle.get().attempt == 1


def test_nan_inside_of_an_object_cannot_be_a_result_either(memory_app: Ostinato) -> None:
    def job() -> Parcel:
        return Parcel(Colour.RED, [], more=float("inf"))

    handle = memory_app.task("job")(job).enqueue()
    drain(memory_app)
    with pytest.raises(RunFailed, match="inf is not a number in JSON"):
        handle.result()


@pytest.mark.parametrize("isolation", ["none", "process"])
def test_a_result_has_a_size_limit(make_app: MakeApp, isolation: Any) -> None:
    app = make_app("sqlite://:memory:", max_result=1000)
    task = app.task("much", isolation=isolation, retry=3)(typed_tasks.much)
    fits, too_large = task.enqueue_many([task.call(998), task.call(size=999)])
    drain(app)
    assert fits.result() == "x" * 998
    with pytest.raises(RunFailed, match=r"returned 1,001 bytes of JSON, and a result may have 1,000 .*max_result"):
        too_large.result()
    assert too_large.get().attempt == 1


def fails() -> None:
    raise ValueError("the till is open")


def test_result_raises_what_failed(memory_app: Ostinato) -> None:
    handle = memory_app.task("fails", retry=0)(fails).enqueue()
    drain(memory_app)
    with pytest.raises(RunFailed, match=f"run {handle.id} of 'fails' failed: ValueError: the till is open") as failed:
        handle.result()
    error = failed.value
    assert (error.run, error.state, error.cause) == (handle.id, RunState.FAILED, Cause.RAISED)
    assert error.reason == "ValueError: the till is open"
    assert error.traceback is not None
    assert 'raise ValueError("the till is open")' in error.traceback
    assert error.traceback in "".join(error.__notes__), "who prints the error sees where it was raised"


def ended(app: Ostinato, id: int) -> Run:
    drain(app)
    return app.runs.get(id)


def test_result_says_that_there_is_none(memory_app: Ostinato, fake_clock: FakeClock) -> None:
    task = memory_app.task("job")(lambda: None)
    cancelled = task.using(delay="1h").enqueue()
    cancelled.cancel()
    with pytest.raises(RunCancelled, match=r"run .* of 'job' was cancelled: cancelled by a program"):
        cancelled.result()
    expired = task.using(max_age="1m").enqueue()
    fake_clock.advance("1h")
    assert ended(memory_app, expired.id).state is RunState.EXPIRED
    with pytest.raises(NotExecuted) as refused:
        expired.result()
    assert refused.value.state == RunState.EXPIRED
    with pytest.raises(WaitTimeout):
        task.using(delay="1h").enqueue().result(timeout=0)


def test_calls_of_another_task_are_refused(memory_app: Ostinato) -> None:
    one = memory_app.task("one")(lambda n: n)
    other = memory_app.task("other")(lambda n: n)
    with pytest.raises(InvalidInput, match=r"a call cannot be <call other\(1\)>"):
        one.enqueue_many([other.call(1)])
    handles = one.enqueue_many([one.call(1), one.call(n=2), (3,), {"n": 4}])
    drain(memory_app)
    assert [handle.result() for handle in handles] == [1, 2, 3, 4]


def test_annotations_that_leave_parts_open_take_plain_json(memory_app: Ostinato) -> None:
    def job(
        a: list[object],
        b: Mapping[str, object],
        c: Sequence[int],
        d: Iterable[str],
        e: dict,  # type: ignore[type-arg]
        f: int | float,
        g: Literal["x", "y"],
    ) -> str:
        return json.dumps([a, dict(b), list(c), list(d), e, f, g])

    args: Any = [[1, "x", None], {"k": [1]}, [1], ["s"], {"any": {"thing": 1.5}}, 1.5, "y"]
    task = memory_app.task("job")(job)
    handle = task.enqueue(*args)
    drain(memory_app)
    assert json.loads(handle.result()) == args
    with pytest.raises(InvalidInput, match="argument 'a' of task 'job' has a datetime, which is not JSON"):
        task.enqueue([NOW], *args[1:])
    with pytest.raises(InvalidInput, match="argument 'g' of task 'job' does not fit Literal"):
        task.enqueue(*[*args[:-1], "z"])


def test_none_is_taken_where_it_is_the_default(memory_app: Ostinato) -> None:
    def job(when: datetime = None, count: int | None = 3) -> str:  # type: ignore[assignment]  # noqa: RUF013
        return json.dumps([when, count])

    handle = memory_app.task("job")(job).enqueue(None, count=None)  # type: ignore[arg-type]
    drain(memory_app)
    assert handle.result() == "[null, null]"
