"""A backend that a project makes of ours, with tasks of a class of its own."""

from __future__ import annotations

from dataclasses import dataclass

from django_tasks import task
from django_tasks.base import Task

from ostinato.integrations.django import OstinatoBackend

__all__ = ["RegisteredPost", "carry"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredTask(Task):  # type: ignore[type-arg]
    """A task with an attribute more."""

    insured: int = 0


class RegisteredPost(OstinatoBackend):
    """Tasks are insured here."""

    task_class = RegisteredTask


@task(backend="registered", insured=500)
def carry(what: str) -> str:
    return what
