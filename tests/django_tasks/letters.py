"""Tasks of Django, as a project has them. Imported by the fixture `letters`, when there are settings."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Any

from django_tasks import TaskContext, task

from ostinato import Snooze, current_run

__all__ = ["Torn"]


class Torn(Exception):
    """What a task raises."""


done: list[Any] = []
"""What was executed, in this order."""


@task
def add(first: int, second: int = 0) -> int:
    """Add two numbers."""
    return first + second


@task()
async def add_soon(first: int, second: int = 0) -> int:
    return first + second


@task(priority=7, queue_name="letters")
def write(to: str) -> str:
    done.append(to)
    return f"written to {to}"


@task(takes_context=True)
def sign(context: TaskContext, name: str) -> dict[str, Any]:
    result = context.task_result
    return {
        "attempt": context.attempt,
        "id": result.id,
        "status": result.status,
        "args": result.args,
        "kwargs": result.kwargs,
        "backend": result.backend,
        "queue": result.task.queue_name,
        "workers": len(result.worker_ids),
        "name": name,
    }


@task(takes_context=True)
def look_at_itself(context: TaskContext) -> list[Any]:
    """What others see of it while it runs."""
    context.task_result.refresh()
    found = context.task_result.task.get_backend().get_result(context.task_result.id)
    return [found.status, found.attempts, found.finished_at, found == context.task_result]


@task(takes_context=True)
async def sign_soon(context: TaskContext) -> int:
    return context.attempt


@task
def tear(text: str) -> None:
    try:
        raise ValueError("the paper was thin")
    except ValueError as error:
        raise Torn(text) from error


@task(backend="patient", takes_context=True)
def tear_twice(context: TaskContext) -> dict[str, Any]:
    if context.attempt < 3:
        raise Torn(f"attempt {context.attempt}")
    return {"attempt": context.attempt, "errors": len(context.task_result.errors)}


@task
async def tear_soon() -> None:
    raise Torn("at once")


@task
def annotated(when: datetime) -> str:
    """The annotation of an argument is none of Django's business."""
    return type(when).__name__


@task
def give_back(value: Any) -> Any:
    return value


@task
def give_set() -> Any:
    return {1, 2}


@task
def give_nan() -> float:
    return float("nan")


@task
def give_much() -> str:
    return "x" * 2_000_000


@task
def double_dictionary(key: Any) -> Any:
    return {key: key * 2}


@task
async def wait_for_ever() -> None:
    await asyncio.Event().wait()


@task
def snooze() -> int:
    done.append("snooze")
    if done.count("snooze") == 1:
        raise Snooze("5m")
    return current_run().attempt
