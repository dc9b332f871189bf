"""A project: a name and a folder. It groups schedules, and is where shell and agent work runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ostinato.errors import InvalidInput
from ostinato.models.policy import check_key

__all__ = ["NO_PROJECT", "Conversation", "Project", "ProjectContext", "check_project"]

NO_PROJECT = "none"
"""What people say for no project; so none can be called that."""


@dataclass(frozen=True, slots=True)
class Project:
    """A name and a folder. It groups schedules, and its folder is where shell and agent work runs.

    `env` may hold references to secrets, never secrets.
    """

    name: str
    folder: str
    env: Mapping[str, str]
    schedules: int
    created_at: datetime


@dataclass(frozen=True, slots=True)
class ProjectContext:
    """What work needs to know before it starts: where its project is, and which conversation it continues."""

    folder: str | None = None
    """None if the run has no project."""
    env: Mapping[str, str] = field(default_factory=dict)
    conversation: str | None = None
    """The id to resume; None if there is none yet."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """The conversation that a run leaves behind for the next one of the same key."""

    key: str
    id: str
    project: str | None = None
    """The project that it goes with; one that has a name of its own belongs to none."""


def check_project(name: Any) -> str:
    """A project's name; InvalidInput if it cannot be one."""
    checked = check_key(name, "project", "give a name such as blog")
    if checked != checked.strip() or checked == NO_PROJECT:
        raise InvalidInput(f"a project cannot be called {name!r}", field="project", hint="give a name such as blog")
    return checked
