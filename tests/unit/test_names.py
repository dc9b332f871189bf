"""Names are printable wherever one is made: a name that holds a line break or an escape would forge what is logged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ostinato import Agent, Function, Ostinato, Shell
from ostinato.config import load_settings
from ostinato.errors import InvalidInput
from ostinato.models.policy import make_policy

_FORGED = ["a\n2026-01-01 CRITICAL forged", "a\x1b[2Jb", "a\x85b", "a\u202eb", "a\u2028b", "a\udc80b"]


def _nothing() -> None:
    """A task."""


_DOORS: dict[str, tuple[str, Callable[[Ostinato, str], Any]]] = {
    "a task": ("task", lambda app, name: app.task(name)(_nothing)),
    "a check": ("name", lambda app, name: app.check(name)(lambda: True)),
    "an app": ("name", lambda _, name: Ostinato("sqlite:///names.db", name=name)),
    "a schedule": ("name", lambda app, name: app.schedules.add(name, "every 1h", Shell("true"))),
    "a schedule's owner": ("owner", lambda app, name: app.schedules.add("s", "every 1h", Shell("true"), owner=name)),
    "a schedule's task": ("task", lambda app, name: app.schedules.add("s", "every 1h", name)),
    "a schedule's function": ("task", lambda app, name: app.schedules.add("s", "every 1h", Function(name, [1]))),
    "a run's task": ("task", lambda app, name: app.runs.enqueue_work(name)),
    "a run's key": ("key", lambda app, name: app.runs.enqueue_work("t", key=name)),
    "a message's task": ("task", lambda app, name: app.sessions.send("dm:1", 1, task=name)),
    "a session": ("key", lambda app, name: app.sessions.send(name, 1, task="t")),
    "a project": ("project", lambda app, name: app.projects.add(name, ".")),
    "a lane": ("name", lambda app, name: app.lanes.set(name, 1)),
    "a lane of the settings": ("lanes", lambda _, name: load_settings(lanes={name: 1})),
    "a policy's lane": ("lane", lambda _, name: make_policy({"lane": name})),
    "a policy's checks": ("checks", lambda _, name: make_policy({"checks": [name]})),
    "a policy's notify": ("notify", lambda _, name: make_policy({"notify": [name]})),
    "an agent's command line": ("cli", lambda _, name: Agent("hello", cli=name)),
}


@pytest.mark.parametrize("door", _DOORS)
def test_a_name_that_cannot_be_printed_is_refused_by_its_field(door: str, tmp_path: Path) -> None:
    field, make = _DOORS[door]
    app = Ostinato(f"sqlite:///{tmp_path}/names.db")
    try:
        for name in _FORGED:
            with pytest.raises(InvalidInput) as refused:
                make(app, name)
            assert refused.value.field == field
            assert refused.value.hint
            assert str(refused.value).isprintable()
    finally:
        app.stop()


@pytest.mark.parametrize("name", ["mail", "jobs.send/nightly", "Grüße", "日本語", "🎵 ostinato"])
def test_names_of_every_script_are_taken(name: str, tmp_path: Path) -> None:
    app = Ostinato(f"sqlite:///{tmp_path}/names.db", name=name)
    try:
        task = app.task(name)(_nothing)
        assert app.runs.get(task.enqueue().id).task == name
        assert app.schedules.add(name, "every 1h", name).name == name
    finally:
        app.stop()
