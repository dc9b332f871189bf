"""What the documentation of Django's tasks says of results, errors, contexts and signals, sentence by sentence."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from ostinato import Function, Ostinato, RunCancelled, RunFailed
from ostinato.clock import SystemClock
from ostinato.testing import FakeClock, adrain, drain, rehearse
from tests.databases import LIGHT
from tests.django_tasks.test_enqueueing import backend, overridden, run_of

pytestmark = pytest.mark.usefixtures("project")

PATIENCE = 20


class Heard:
    """What signals were sent, and with what."""

    def __init__(self) -> None:
        self.all: list[tuple[str, type, Any, str]] = []
        self._arrived = threading.Condition()

    def hear(self, name: str) -> Any:
        def receiver(sender: type, task_result: Any, **_: Any) -> None:
            with self._arrived:
                self.all.append((name, sender, task_result, str(task_result.status)))
                self._arrived.notify_all()

        return receiver

    def wait(self, count: int) -> None:
        with self._arrived:
            assert self._arrived.wait_for(lambda: len(self.all) >= count, PATIENCE), self.all

    @property
    def words(self) -> list[tuple[str, str]]:
        return [(name, status) for name, _, _, status in self.all]


@pytest.fixture
def heard(project: None) -> Iterator[Heard]:
    from django_tasks import signals

    heard = Heard()
    receivers = {name: heard.hear(name) for name in ("task_enqueued", "task_started", "task_finished")}
    for name, receiver in receivers.items():
        getattr(signals, name).connect(receiver)
    yield heard
    for name, receiver in receivers.items():
        getattr(signals, name).disconnect(receiver)


# Finding results


def test_a_result_can_be_retrieved_by_its_id_somewhere_else(jobs: Ostinato, letters: Any) -> None:
    result = letters.add.enqueue(1, 2)
    assert letters.add.get_result(result.id) == result
    assert backend().get_result(result.id) == result
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(backend().get_result(result.id)))
    thread.start()
    thread.join()
    assert found == [result]


def test_an_id_is_a_string_of_less_than_64_characters_that_nobody_can_guess(jobs: Ostinato, letters: Any) -> None:
    from django_tasks.exceptions import TaskResultDoesNotExist

    from ostinato.integrations.django.task_results import result_id

    first, second = letters.add.enqueue(1), letters.add.enqueue(2)
    assert first.id != second.id
    assert len(result_id(2**63 - 1)) < 64
    number, _, signature = first.id.partition(".")
    other = second.id.partition(".")[0]
    for guess in (number, f"{other}.{signature}", f"{number}.", "", "x", f"{number}.{signature[:-1]}"):
        with pytest.raises(TaskResultDoesNotExist):
            backend().get_result(guess)


def test_a_result_that_does_not_exist_is_not_found(jobs: Ostinato, letters: Any) -> None:
    from django_tasks.exceptions import TaskResultDoesNotExist

    from ostinato.integrations.django.task_results import result_id

    ordinary = jobs.enqueue(Function("another task"))
    for id in (result_id(4711), result_id(ordinary.id)):
        with pytest.raises(TaskResultDoesNotExist):
            letters.add.get_result(id)


async def test_nor_is_it_for_coroutines(jobs: Ostinato, letters: Any) -> None:
    from django_tasks.exceptions import TaskResultDoesNotExist

    with pytest.raises(TaskResultDoesNotExist):
        await letters.add.aget_result("nothing")
    with pytest.raises(TaskResultDoesNotExist):
        await backend().aget_result("4711")


def test_only_results_of_the_same_task_can_be_retrieved_by_it(jobs: Ostinato, letters: Any) -> None:
    from django_tasks.exceptions import TaskResultMismatch

    result = letters.add.enqueue(1, 2)
    with pytest.raises(TaskResultMismatch, match=r"letters\.add"):
        letters.write.get_result(result.id)
    assert letters.add.using(priority=3).get_result(result.id).id == result.id


def test_a_result_says_as_what_it_was_enqueued_whatever_is_allowed_today(jobs: Ostinato, letters: Any) -> None:
    result = letters.write.using(priority=-5).enqueue("ada")
    with overridden(QUEUES=["default"]):
        found = backend().get_result(result.id)
    assert (found.task.queue_name, found.task.priority, found.task.run_after) == ("letters", -5, None)


def test_a_run_whose_backend_was_removed_is_executed_all_the_same(jobs: Ostinato, letters: Any) -> None:
    with overridden("short_lived"):
        result = letters.add.using(backend="short_lived").enqueue(1, 2)
    drain(jobs)
    found = backend().get_result(result.id)
    assert (found.backend, found.return_value) == ("short_lived", 3)


def test_a_result_is_the_same_by_a_clock_that_goes_on(letters: Any, project: None) -> None:
    from ostinato.integrations.django import jobs

    with rehearse(jobs, SystemClock()):
        result = letters.add.enqueue(1, 2)
        assert letters.add.get_result(result.id) == result


# Updating, and what a task returned


@pytest.mark.parametrize("jobs_anywhere", LIGHT, indirect=True)
def test_a_result_is_as_it_was_when_it_was_retrieved_until_it_is_refreshed(
    jobs_anywhere: Ostinato, letters: Any, clock: FakeClock
) -> None:
    result = letters.add.enqueue(1, 2)
    clock.advance("3s")
    drain(jobs_anywhere)
    assert result.status == "READY"
    result.refresh()
    assert result.status == "SUCCESSFUL"
    assert result.is_finished
    assert result.return_value == 3
    assert result.started_at == result.last_attempted_at == result.finished_at == clock.now_utc()
    assert result.enqueued_at == clock.now_utc() - timedelta(seconds=3)
    assert (result.errors, result.attempts, len(result.worker_ids)) == ([], 1, 1)


def test_the_return_value_of_a_task_that_has_not_finished_raises_value_error(jobs: Ostinato, letters: Any) -> None:
    result = letters.add.enqueue(1)
    with pytest.raises(ValueError, match="Task has not finished yet"):
        _ = result.return_value


def test_the_return_value_of_a_task_that_has_failed_raises_value_error(jobs: Ostinato, letters: Any) -> None:
    result = letters.tear.enqueue("in two")
    drain(jobs)
    result.refresh()
    assert result.status == "FAILED"
    assert result.is_finished
    assert result.finished_at is not None
    with pytest.raises(ValueError, match="Task failed"):
        _ = result.return_value


@pytest.mark.parametrize(
    ("name", "error"), [("give_set", TypeError), ("give_nan", ValueError)], ids=["a set", "not a number"]
)
def test_return_values_must_be_json(name: str, error: type[Exception], jobs: Ostinato, letters: Any) -> None:
    result = getattr(letters, name).enqueue()
    drain(jobs)
    result.refresh()
    assert (result.status, result.errors[0].exception_class) == ("FAILED", error)


def test_a_return_value_that_is_too_large_fails_and_says_so(jobs: Ostinato, letters: Any, heard: Heard) -> None:
    result = letters.give_much.enqueue()
    drain(jobs)
    result.refresh()
    assert result.status == "FAILED"
    assert "the setting max_result" in result.errors[0].traceback
    assert heard.words[-1] == ("task_finished", "FAILED")


# Errors and attempts


@pytest.mark.parametrize("jobs_anywhere", LIGHT, indirect=True)
def test_the_exception_and_its_traceback_are_saved(jobs_anywhere: Ostinato, letters: Any) -> None:
    for task, arguments in ((letters.tear, ("in two: now\nthen",)), (letters.tear_soon, ())):
        result = task.enqueue(*arguments)
        drain(jobs_anywhere)
        result.refresh()
        (error,) = result.errors
        assert error.exception_class is letters.Torn
        assert error.exception_class_path == "tests.django_tasks.letters.Torn"
        assert error.traceback.startswith("Traceback (most recent call last):\n")
        assert "letters.py" in error.traceback
        assert "task_calls.py" not in error.traceback
        assert result.attempts == 1


def test_a_failed_task_is_not_tried_again_unless_options_say_so(jobs: Ostinato, letters: Any) -> None:
    result = letters.tear.enqueue("in two")
    drain(jobs)
    assert run_of(jobs, result).state == "failed"


@pytest.mark.parametrize("jobs_anywhere", LIGHT, indirect=True)
def test_each_attempt_has_its_error_and_its_worker(
    jobs_anywhere: Ostinato, letters: Any, clock: FakeClock, heard: Heard
) -> None:
    began = clock.now_utc()
    result = letters.tear_twice.enqueue()
    assert drain(jobs_anywhere) == 1
    result.refresh()
    assert (result.status, result.attempts, result.backend) == ("READY", 1, "patient")
    assert (result.finished_at, result.started_at) == (None, began)
    for pause in ("10s", "20s"):
        clock.advance(pause)
        assert drain(jobs_anywhere) == 1
    result.refresh()
    assert result.return_value == {"attempt": 3, "errors": 2}
    assert (result.attempts, len(result.worker_ids)) == (3, 3)
    assert [error.exception_class for error in result.errors] == [letters.Torn] * 2
    assert ["attempt 1" in result.errors[0].traceback, "attempt 2" in result.errors[1].traceback] == [True, True]
    assert (result.started_at, result.last_attempted_at) == (began, began + timedelta(seconds=30))
    # It has finished once.
    assert [word for word in heard.words if word[0] == "task_finished"] == [("task_finished", "SUCCESSFUL")]


def test_policies_are_options(jobs: Ostinato, letters: Any, clock: FakeClock) -> None:
    with overridden(OPTIONS={"max_age": "1h", "retry": 1}):
        result = letters.add.enqueue(1)
        clock.advance("2h")
        drain(jobs)
        result.refresh()
        assert result.status == "FAILED"
        assert result.attempts == 0
        assert "max age" in result.errors[0].traceback


def test_a_snoozed_task_is_ready_again_and_has_no_error(jobs: Ostinato, letters: Any, clock: FakeClock) -> None:
    result = letters.snooze.enqueue()
    drain(jobs)
    result.refresh()
    assert (result.status, result.errors) == ("READY", [])
    clock.advance("5m")
    drain(jobs)
    result.refresh()
    assert (result.return_value, result.attempts) == (1, 2)


def test_a_cancelled_task_has_failed(jobs: Ostinato, letters: Any, heard: Heard) -> None:
    result = letters.add.enqueue(1)
    jobs.runs.cancel(run_of(jobs, result).id, reason="not needed any more")
    result.refresh()
    (error,) = result.errors
    assert (result.status, error.exception_class) == ("FAILED", RunCancelled)
    assert error.traceback == "not needed any more"
    heard.wait(2)
    assert heard.words == [("task_enqueued", "READY"), ("task_finished", "FAILED")]


def test_an_end_that_is_not_the_tasks_own_is_told_once(letters: Any, project: None, heard: Heard) -> None:
    from ostinato.integrations.django import jobs

    with rehearse(jobs, SystemClock()), overridden(OPTIONS={"timeout": "50ms"}):
        result = letters.wait_for_ever.enqueue()
        drain(jobs)
        heard.wait(3)
        result.refresh()
    assert heard.words == [("task_enqueued", "READY"), ("task_started", "RUNNING"), ("task_finished", "FAILED")]
    assert heard.all[-1][2] == result
    assert result.errors[0].exception_class is RunFailed
    assert "timed out" in result.errors[0].traceback


def test_a_run_that_repeats_another_is_enqueued_when_it_is_repeated(
    jobs: Ostinato, letters: Any, clock: FakeClock
) -> None:
    result = letters.add.using(run_after=clock.now_utc() + timedelta(hours=1)).enqueue(1, 2)
    clock.advance("2h")
    drain(jobs)
    clock.advance("1h")
    again = jobs.runs.retry(run_of(jobs, result).id)
    from ostinato.integrations.django.task_results import result_id

    repeated = backend().get_result(result_id(again.id))
    assert (repeated.enqueued_at, repeated.task.run_after) == (clock.now_utc(), None)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("Traceback (most recent call last):\n  File 'x'\n    f()\nValueError: a\n", "builtins.ValueError"),
        ("Traceback (most recent call last):\n  File 'x'\nshop.errors.Torn\n", "shop.errors.Torn"),
        (
            "Traceback (most recent call last):\n  File 'x'\na.B: he said\n"
            "Traceback (most recent call last):\n  F\nc.D: e\n",
            "a.B",
        ),
        (
            "a.B: first\n\nDuring handling of the above exception, another exception occurred:\n\n"
            "Traceback (most recent call last):\n  File 'x'\nc.D: e\nand more\nnote: this\n",
            "c.D",
        ),
        (
            "  + Exception Group Traceback (most recent call last):\n  |   File 'x'\n  | ExceptionGroup: two (2)\n"
            "  +-+---------------- 1 ----------------\n    | ValueError: a\n",
            "builtins.ExceptionGroup",
        ),
        ("TypeError: f() takes 1 positional argument\n", "builtins.TypeError"),
        ("cancelled", None),
        ("budget: used up", None),
        ("its node was stopped while it ran", None),
    ],
)
def test_the_class_of_an_exception_is_read_from_its_traceback(text: str, path: str | None, project: None) -> None:
    from ostinato.integrations.django.task_results import class_path

    assert class_path(text) == path


# Context


def test_a_task_that_takes_context_gets_the_running_result(jobs: Ostinato, letters: Any) -> None:
    result = letters.sign.enqueue(name="ada")
    soon = letters.sign_soon.enqueue()
    drain(jobs)
    result.refresh()
    soon.refresh()
    assert result.return_value == {
        "attempt": 1,
        "id": result.id,
        "status": "RUNNING",
        "args": [],
        "kwargs": {"name": "ada"},
        "backend": "default",
        "queue": "default",
        "workers": 1,
        "name": "ada",
    }
    assert soon.return_value == 1


@pytest.mark.parametrize("jobs_anywhere", LIGHT, indirect=True)
def test_others_see_that_a_task_is_running(jobs_anywhere: Ostinato, letters: Any) -> None:
    result = letters.look_at_itself.enqueue()
    drain(jobs_anywhere)
    result.refresh()
    assert result.return_value == ["RUNNING", 1, None, True]


def test_a_task_can_be_scheduled_and_run_by_hand(jobs: Ostinato, letters: Any, clock: FakeClock) -> None:
    jobs.schedules.add("hourly", "every 1h", Function("tests.django_tasks.letters.write", ["ada"]))
    clock.advance("1h")
    assert drain(jobs) == 1
    run = jobs.execute(Function("tests.django_tasks.letters.sign", ["bob"]))
    assert run.result["name"] == "bob"
    why = jobs.why("hourly")
    assert why.run is not None
    assert why.run.result == "written to ada"


# Signals


def test_signals_are_sent_when_a_task_is_enqueued_started_and_finished(
    jobs: Ostinato, letters: Any, heard: Heard
) -> None:
    from ostinato.integrations.django import OstinatoBackend

    result = letters.add.enqueue(1, 2)
    assert heard.words == [("task_enqueued", "READY")]
    drain(jobs)
    assert [(name, sender) for name, sender, _, _ in heard.all] == [
        ("task_enqueued", OstinatoBackend),
        ("task_started", OstinatoBackend),
        ("task_finished", OstinatoBackend),
    ]
    assert [status for _, _, _, status in heard.all] == ["READY", "RUNNING", "SUCCESSFUL"]
    finished = heard.all[-1][2]
    assert (finished.id, finished.return_value, finished.attempts) == (result.id, 3, 1)
    result.refresh()
    assert finished == result


async def test_they_are_sent_by_coroutines_too(jobs: Ostinato, letters: Any, heard: Heard) -> None:
    await letters.add_soon.aenqueue(1, 2)
    await letters.tear_soon.aenqueue()
    await adrain(jobs)
    assert sorted(heard.words) == [
        ("task_enqueued", "READY"),
        ("task_enqueued", "READY"),
        ("task_finished", "FAILED"),
        ("task_finished", "SUCCESSFUL"),
        ("task_started", "RUNNING"),
        ("task_started", "RUNNING"),
    ]


def test_the_finished_signal_of_a_failure_is_sent_while_the_exception_is_handled(
    jobs: Ostinato, letters: Any, caplog: pytest.LogCaptureFixture
) -> None:
    letters.tear.enqueue("in two")
    drain(jobs)
    (record,) = [record for record in caplog.records if record.name == "django_tasks" and record.levelname == "ERROR"]
    assert record.exc_info is not None
    assert record.exc_info[0] is letters.Torn


def test_a_receiver_that_raises_does_not_harm_the_task(jobs: Ostinato, letters: Any) -> None:
    from django_tasks.signals import task_finished, task_started

    def broken(**_: Any) -> None:
        raise RuntimeError("broken receiver")

    task_started.connect(broken)
    task_finished.connect(broken)
    try:
        result = letters.add.enqueue(1, 2)
        drain(jobs)
    finally:
        task_started.disconnect(broken)
        task_finished.disconnect(broken)
    result.refresh()
    assert result.return_value == 3


# In tests of a project


def test_eager_tests_execute_a_task_where_it_is_enqueued(letters: Any, project: None, heard: Heard) -> None:
    from ostinato.integrations.django import jobs

    with rehearse(jobs, eager=True):
        result = letters.add.enqueue(1, 2)
        assert (result.status, result.return_value) == ("SUCCESSFUL", 3)
        assert asyncio.run(letters.add.aenqueue(3, 4)).return_value == 7
        letters.write.enqueue("ada")
        assert letters.done == ["ada"]
    assert ("task_finished", "SUCCESSFUL") in heard.words


def test_a_run_that_was_enqueued_by_name_has_the_backend_and_the_queue_of_its_task(
    jobs: Ostinato, letters: Any
) -> None:
    from ostinato.integrations.django.task_results import result_id

    by_name = [jobs.enqueue(Function(f"tests.django_tasks.letters.{name}", ["x"])) for name in ("tear_twice", "write")]
    results = [backend().get_result(result_id(run.id)) for run in by_name]
    assert [(each.backend, each.task.queue_name) for each in results] == [
        ("patient", "default"),
        ("default", "letters"),
    ]
    other = letters.tear_twice.using(backend="default").enqueue()
    assert backend().get_result(other.id).backend == "default"
    plain = letters.write.using(queue_name="default").enqueue("x")
    assert backend().get_result(plain.id).task.queue_name == "default"


def test_only_a_module_that_may_hold_the_task_is_imported(
    jobs: Ostinato, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ostinato.integrations.django import task_calls

    package = tmp_path / "counter_of_post"
    (package / "parts").mkdir(parents=True)
    touch = "from pathlib import Path\nPath(__file__ + '.imported').touch()\n"
    task = "from django_tasks import task\ntry:\n    @task\n    async def post(): pass\nfinally: pass\n"
    files = {"__init__": "", "wipe": f"{touch}def plain(): pass\n", "parts/__init__": touch, "tasks": touch + task}
    files |= {"parts/wipe": touch, "assigned": f"{touch}from django_tasks import task\ndef f(): pass\nf = task(f)\n"}
    for name, code in files.items():
        (package / f"{name}.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(task_calls, "_may_be_imported", lambda path: path.startswith("counter_of_post."))
    for path in ("wipe.x", "wipe.plain", "parts.x", "parts.wipe.x", "tasks.x", "tasks.post.x", "nothing.x", "a..b"):
        assert not task_calls.find(f"counter_of_post.{path}")
    assert list(package.rglob("*.imported")) == []
    assert task_calls.find("counter_of_post.tasks.post")
    assert task_calls.find("counter_of_post.assigned.f")
    assert {file.name for file in package.rglob("*.imported")} == {"tasks.py.imported", "assigned.py.imported"}
