"""What the documentation of Django's tasks says of backends, sentence by sentence: defining and enqueueing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ostinato import InvalidInput, Ostinato, RunState
from ostinato.errors import StoreError
from ostinato.testing import FakeClock, adrain, drain, rehearse
from tests.databases import LIGHT
from tests.django_tasks.conftest import BACKEND, TASKS

pytestmark = pytest.mark.usefixtures("project")


def backend(alias: str = "default") -> Any:
    from django_tasks import task_backends

    return task_backends[alias]


def overridden(alias: str = "default", **params: Any) -> Any:
    from django.test import override_settings

    return override_settings(TASKS={**TASKS, alias: {"BACKEND": BACKEND, **params}})


def run_of(jobs: Ostinato, result: Any) -> Any:
    """The row of a result: its id begins with the run's number."""
    return jobs.runs.get(int(result.id.partition(".")[0]))


# Retrieving backends, and what they support


def test_the_default_backend_is_available_as_default_task_backend() -> None:
    from django_tasks import default_task_backend
    from django_tasks.backends.base import BaseTaskBackend

    from ostinato.integrations.django import OstinatoBackend

    assert type(backend()) is OstinatoBackend
    assert issubclass(OstinatoBackend, BaseTaskBackend)
    assert default_task_backend.alias == "default"
    assert backend("patient").alias == "patient"


def test_it_supports_every_feature_that_a_backend_can_have() -> None:
    for flag in ("supports_defer", "supports_async_task", "supports_get_result", "supports_priority"):
        assert getattr(backend(), flag) is True


def test_options_are_a_dictionary_of_extra_parameters_for_the_backend() -> None:
    assert backend().options == {}
    assert backend("patient").options == TASKS["patient"]["OPTIONS"]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"retries": 3}, "there is no policy 'retries'"),
        ({"timeout": "soon"}, "timeout"),
        ({"lane": "main"}, "lane is no option: the queue_name of a task says it"),
        ({"priority": 3}, "priority is no option"),
        ({"lanes": ["team"]}, "lanes cannot be"),
        ({"transaction": True}, "transaction cannot be True"),
        ("retry", "give a dict"),
    ],
)
def test_a_wrong_option_is_refused_with_its_name(options: Any, named: str) -> None:
    from django.core.exceptions import ImproperlyConfigured

    with overridden(OPTIONS=options), pytest.raises(ImproperlyConfigured, match=named) as refusal:
        backend()
    assert "TASKS['default']" in str(refusal.value)


# Defining


def test_the_return_value_of_the_decorator_is_a_task_instance(letters: Any) -> None:
    from django_tasks.base import Task

    assert isinstance(letters.add, Task)
    assert letters.add.call(1, 2) == 3
    assert letters.add.name == "add"


def test_a_task_is_registered_under_its_module_path_as_soon_as_it_is_defined(jobs: Ostinato, letters: Any) -> None:
    assert "tests.django_tasks.letters.write" in jobs.registry.tasks
    assert jobs.registry.tasks["tests.django_tasks.letters.add"].function.__doc__ == "Add two numbers."


def test_a_task_is_defined_on_a_module_level_function(letters: Any) -> None:
    from django_tasks import task
    from django_tasks.exceptions import InvalidTaskError

    def inner() -> None: ...

    with pytest.raises(InvalidTaskError, match="module level"):
        task(inner)
    with pytest.raises(InvalidTaskError, match="module level"):
        task(len)


def test_attributes_can_be_customized_and_a_task_is_modified_by_using_alone(letters: Any) -> None:
    assert (letters.write.priority, letters.write.queue_name) == (7, "letters")
    assert letters.add.using(priority=10).priority == 10
    assert letters.add.priority == 0
    with pytest.raises(AttributeError):
        letters.add.priority = 3


@pytest.mark.parametrize("priority", [-101, 101, 3.1])
def test_priorities_must_be_whole_and_between_minus_100_and_100(priority: Any, letters: Any) -> None:
    from django_tasks.exceptions import InvalidTaskError

    with pytest.raises(InvalidTaskError, match="whole number between -100 and 100"):
        letters.add.using(priority=priority)


def test_a_task_that_takes_context_has_a_first_argument_of_that_name(letters: Any) -> None:
    from django_tasks import task
    from django_tasks.exceptions import InvalidTaskError

    with pytest.raises(InvalidTaskError, match="first argument of 'context'"):
        task(letters.add.func, takes_context=True)


def test_an_unknown_backend_cannot_be_used(letters: Any) -> None:
    from django_tasks.exceptions import InvalidTaskBackendError

    with pytest.raises(InvalidTaskBackendError):
        letters.add.using(backend="elsewhere")


def test_a_backend_of_the_project_can_have_a_task_class_with_more_arguments(jobs: Ostinato) -> None:
    from tests.django_tasks.registered_post import carry

    result = carry.using(priority=2).enqueue("a letter")
    drain(jobs)
    found = backend("registered").get_result(result.id)
    assert (found.task.insured, found.task.priority, found.backend) == (500, 2, "registered")
    assert found.task == carry.using(priority=2)
    assert found.return_value == "a letter"


# Enqueueing


def test_enqueueing_returns_a_result_that_is_ready(jobs: Ostinato, letters: Any, clock: FakeClock) -> None:
    from django_tasks import TaskResult, TaskResultStatus

    result = letters.add.enqueue(1, second=2)
    assert isinstance(result, TaskResult)
    assert result.status == TaskResultStatus.READY
    assert (result.args, result.kwargs, result.backend) == ([1], {"second": 2}, "default")
    assert result.enqueued_at == clock.now_utc()
    assert (result.started_at, result.finished_at, result.last_attempted_at) == (None, None, None)
    assert (result.errors, result.worker_ids, result.attempts, result.is_finished) == ([], [], 0, False)
    assert result.task == letters.add


@pytest.mark.parametrize("jobs_anywhere", LIGHT, indirect=True)
def test_a_worker_claims_the_task_executes_it_and_saves_status_and_result(
    jobs_anywhere: Ostinato, letters: Any
) -> None:
    from django_tasks import TaskResultStatus

    results = [letters.add.enqueue(1, second=2), letters.add_soon.enqueue(3, 4)]
    assert drain(jobs_anywhere) == 2
    for result, returned in zip(results, (3, 7), strict=True):
        result.refresh()
        assert result.status == TaskResultStatus.SUCCESSFUL
        assert result.return_value == returned


def test_it_is_an_ordinary_row_of_the_ledger(jobs: Ostinato, letters: Any) -> None:
    result = letters.add.enqueue(1, second=2)
    (listed,) = jobs.runs.list(task="tests.django_tasks.letters.add")
    run = run_of(jobs, result)
    assert run.id == listed.id
    assert run.work.args == [1]
    assert run.work.kwargs == {"second": 2}
    assert (run.lane, run.priority, run.state) == ("main", 0, RunState.QUEUED)


async def test_aenqueue_and_aget_result_are_the_async_variants(letters: Any, jobs: Ostinato) -> None:
    results = [await letters.add.aenqueue(1, 2), await letters.add_soon.aenqueue(3, second=4)]
    await letters.write.aenqueue("ada")
    assert await adrain(jobs) == 3
    for result, returned in zip(results, (3, 7), strict=True):
        assert (await backend().aget_result(result.id)).return_value == returned
        assert (await result.task.aget_result(result.id)).return_value == returned
        await result.arefresh()
        assert result.return_value == returned


def test_a_task_that_is_not_valid_when_it_is_enqueued_is_refused(jobs: Ostinato, letters: Any) -> None:
    from django_tasks.exceptions import InvalidTaskError

    with overridden(QUEUES=["default"]), pytest.raises(InvalidTaskError, match="Queue 'letters' is not valid"):
        letters.write.enqueue("ada")
    assert jobs.runs.list() == []


# Arguments and return values


@pytest.mark.parametrize(
    "value", [datetime(2026, 1, 1, tzinfo=UTC), {1, 2}, object(), b"\xff"], ids=lambda value: type(value).__name__
)
def test_what_is_not_json_cannot_be_an_argument(value: Any, jobs: Ostinato, letters: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="Unsupported"):
        letters.give_back.enqueue(value)
    with pytest.raises((TypeError, ValueError), match="Unsupported"):
        letters.give_back.enqueue(value={"deep": [value]})
    assert jobs.runs.list() == []


@pytest.mark.parametrize(
    ("value", "passed"),
    [
        ("text", "text"),
        (None, None),
        (True, True),
        (1.5, 1.5),
        (2**70, 2**70),
        ([1, {"a": [None]}], [1, {"a": [None]}]),
        ((1, 2), [1, 2]),
        (b"bytes", "bytes"),
        ({}, {}),
    ],
    ids=str,
)
def test_arguments_and_return_values_go_through_json(value: Any, passed: Any, jobs: Ostinato, letters: Any) -> None:
    result = letters.give_back.enqueue(value)
    assert result.args == [passed]
    drain(jobs)
    result.refresh()
    assert result.return_value == passed
    assert backend().get_result(result.id).args == [passed]


def test_a_tuple_arrives_as_a_list(jobs: Ostinato, letters: Any) -> None:
    result = letters.double_dictionary.enqueue((1, 2, 3))
    drain(jobs)
    result.refresh()
    assert result.status == "FAILED"
    assert result.errors[0].exception_class is TypeError
    assert "unhashable type: 'list'" in result.errors[0].traceback


def test_annotations_convert_nothing(jobs: Ostinato, letters: Any) -> None:
    result = letters.annotated.enqueue("2026-01-01T00:00:00Z")
    drain(jobs)
    result.refresh()
    assert result.return_value == "str"


def test_nan_is_no_argument(jobs: Ostinato, letters: Any) -> None:
    with pytest.raises(InvalidInput, match="nan"):
        letters.give_back.enqueue(float("nan"))


def test_wrong_arguments_fail_the_task_and_not_the_caller(jobs: Ostinato, letters: Any) -> None:
    result = letters.add.enqueue(1, 2, 3)
    drain(jobs)
    result.refresh()
    assert result.errors[0].exception_class is TypeError


# Queues, priorities, and time


def test_a_queue_name_must_be_among_queues(letters: Any) -> None:
    from django_tasks.exceptions import InvalidTaskError

    with pytest.raises(InvalidTaskError, match="Queue 'elsewhere' is not valid"):
        letters.add.using(queue_name="elsewhere")


def test_queues_may_have_any_name_if_queues_is_empty(jobs: Ostinato, letters: Any) -> None:
    result = letters.add.using(backend="open", queue_name="elsewhere").enqueue(1, 2)
    assert run_of(jobs, result).lane == "elsewhere"
    drain(jobs)
    result.refresh()
    assert (result.backend, result.task.queue_name, result.return_value) == ("open", "elsewhere", 3)


def test_a_queue_is_the_lane_of_its_name_and_the_default_one_is_main(jobs: Ostinato, letters: Any) -> None:
    assert run_of(jobs, letters.add.enqueue(1)).lane == "main"
    result = letters.write.enqueue("ada")
    assert run_of(jobs, result).lane == "letters"
    assert jobs.lanes.get("letters").limit == jobs.lanes.get("main").limit
    assert backend().get_result(result.id).task.queue_name == "letters"
    jobs.lanes.pause("letters")
    assert drain(jobs) == 1
    assert letters.done == []


def test_a_lane_that_could_not_be_made_is_made_by_the_next_enqueueing(
    project: None, tmp_path: Path, letters: Any
) -> None:
    from ostinato.integrations.django import jobs

    file = tmp_path / "jobs.db"
    file.mkdir()
    with rehearse(jobs, db=f"sqlite:///{file}") as app:
        with pytest.raises(StoreError):
            letters.write.enqueue("ada")
        file.rmdir()
        assert run_of(app, letters.write.enqueue("ada")).lane == "letters"


def test_options_say_another_lane_for_a_queue(jobs: Ostinato, letters: Any) -> None:
    with overridden(QUEUES=["default", "letters"], OPTIONS={"lanes": {"letters": "team", "default": "cron"}}):
        assert run_of(jobs, letters.write.enqueue("ada")).lane == "team"
        result = letters.add.enqueue(1)
        assert run_of(jobs, result).lane == "cron"
        assert backend().get_result(result.id).task.queue_name == "default"


@pytest.mark.parametrize("jobs_anywhere", LIGHT, indirect=True)
def test_larger_numbers_are_run_sooner(jobs_anywhere: Ostinato, letters: Any) -> None:
    jobs_anywhere.lanes.set("letters", 1)
    wanted = [-100, 0, 100, 7, -3]
    for priority in wanted:
        letters.write.using(priority=priority).enqueue(str(priority))
    drain(jobs_anywhere)
    assert letters.done == ["100", "7", "0", "-3", "-100"]


@pytest.mark.parametrize("jobs_anywhere", LIGHT, indirect=True)
def test_a_task_is_not_executed_before_run_after(jobs_anywhere: Ostinato, letters: Any, clock: FakeClock) -> None:
    enqueued_at, run_after = clock.now_utc(), clock.now_utc() + timedelta(hours=2)
    result = letters.add.using(run_after=run_after).enqueue(1, 2)
    assert result.task.run_after == run_after
    assert drain(jobs_anywhere) == 0
    clock.advance("1h59m")
    assert drain(jobs_anywhere) == 0
    assert letters.add.get_result(result.id).status == "READY"
    clock.advance("1m")
    assert drain(jobs_anywhere) == 1
    result.refresh()
    assert result.return_value == 3
    assert (result.enqueued_at, result.started_at) == (enqueued_at, run_after)
    found = letters.add.get_result(result.id)
    assert (found.enqueued_at, found.task.run_after, found.kwargs) == (enqueued_at, run_after, {})


def test_run_after_must_be_aware_if_use_tz_is_on(letters: Any) -> None:
    from django_tasks.exceptions import InvalidTaskError

    with pytest.raises(InvalidTaskError, match="aware datetime"):
        letters.add.using(run_after=datetime(2026, 1, 1))


def test_without_use_tz_times_are_naive_as_everywhere_in_django(jobs: Ostinato, letters: Any, clock: FakeClock) -> None:
    from django.test import override_settings
    from django.utils import timezone

    with override_settings(USE_TZ=False):
        soon = timezone.make_naive(clock.now_utc()) + timedelta(minutes=5)
        result = letters.add.using(run_after=soon).enqueue(1, 2)
        assert result.enqueued_at == timezone.make_naive(clock.now_utc())
        assert drain(jobs) == 0
        clock.advance("5m")
        assert drain(jobs) == 1
        result.refresh()
        assert (result.started_at, result.task.run_after) == (soon, soon)
