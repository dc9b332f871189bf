"""`until 10 runs` where a schedule is stored: its policy `remaining`, in every door."""

from __future__ import annotations

from typing import Any

import pytest

from ostinato import Every, Ostinato, TimingError
from tests.doors.command_line import CommandLine


def test_so_many_runs_become_the_policy_remaining(app: Ostinato) -> None:
    stored = app.schedules.add("a", "every 5m until 10 runs", "job")
    assert (stored.timing, stored.policy.remaining, stored.remaining) == ("every 5m", 10, 10)
    assert app.schedules.add("a", Every("5m").limited(10), "job").version == stored.version
    assert len(app.schedules.next("a", 20)) == 10
    edited = app.schedules.edit("a", timing="daily 09:00 from 2027-01-01 until 3 runs")
    assert (edited.timing, edited.policy.remaining) == ("daily 09:00 from 2027-01-01", 3)
    assert app.schedules.add("once", "every 5m until 1 run", "job", run_once=True).policy.remaining == 1


def test_a_task_may_say_it_in_its_decorator(app: Ostinato) -> None:
    @app.task("job", schedule="every 5m until 2 runs")
    def job() -> None: ...

    app.start()
    assert app.schedules.get("job").policy.remaining == 2


def test_the_preview_ends_with_them(cli: CommandLine) -> None:
    answer: dict[str, Any] = cli.ok("timing", "every 5m until 3 runs", "-n", "5", "--json").json
    assert (answer["text"], len(answer["next"])) == ("every 5m until 3 runs", 3)
    assert answer["sentence"] == "Every 5 minutes, until it has run 3 times."
    assert answer["remarks"] == ["A schedule with this timing gets the policy remaining 3."]


def test_a_digest_has_no_number_of_runs(app: Ostinato) -> None:
    with pytest.raises(TimingError, match="runs"):
        app.notifications.add("ops", "json://example.com/x", digest="daily 09:00 until 3 runs")
