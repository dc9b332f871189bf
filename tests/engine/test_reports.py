"""What a script says of itself through $OSTINATO_REPORT: progress and totals, while it runs."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from ostinato import Ostinato, Run, RunState, Shell
from ostinato.execution.context import RunContext
from ostinato.execution.executors import private_places
from ostinato.execution.executors.report import ReportChannel
from ostinato.models.output import output_text
from ostinato.models.run import Progress
from ostinato.testing import FakeClock, drain
from tests.engine.conftest import eventually


def reported(app: Ostinato, *lines: str) -> Run:
    """The run of a script that reports these lines."""
    command = ["sh", "-c", 'for line; do printf "%s\\n" "$line" >> "$OSTINATO_REPORT"; done', "sh", *lines]
    run = app.enqueue(Shell(command), retry=0)
    drain(app)
    assert run.get().state is RunState.SUCCEEDED, run.get().reason
    return run.get()


def test_totals_are_set_and_counts_are_added(app: Ostinato) -> None:
    run = reported(
        app,
        '{"totals": {"copied": 5, "bytes": 1.5}}',
        '{"count": {"copied": 2, "errors": 1}}',
        '{"totals": {"bytes": 7}}',
    )
    assert run.totals == {"copied": 7, "bytes": 7, "errors": 1}
    assert app.runs.output(run.id) == ""


@pytest.mark.parametrize(
    ("line", "progress"),
    [
        ('{"progress": {"done": 3, "total": 10, "text": "c.txt"}}', Progress(3, 10, "c.txt")),
        ('{"progress": {"done": 3}}', Progress(3)),
        ('{"progress": "3/10"}', Progress(3, 10)),
        ('{"progress": "2.5"}', Progress(2.5)),
        ('{"progress": 4}', Progress(4)),
    ],
)
def test_progress_can_be_said_in_several_ways(memory_app: Ostinato, line: str, progress: Progress) -> None:
    assert reported(memory_app, line).progress == progress


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("nonsense", "JSON is malformed"),
        ("[1]", "it has neither totals nor count nor progress"),
        ('{"done": 3}', "it has neither totals nor count nor progress"),
        ('{"totals": 3}', "totals cannot be 3"),
        ('{"totals": {"copied": "many"}}', "total 'copied' cannot be 'many'"),
        ('{"totals": {"": 1}}', "a total needs a name"),
        ('{"count": {"copied": null}}', "total 'copied' cannot be None"),
        ('{"progress": "soon"}', "progress cannot be 'soon'"),
        ('{"progress": true}', "progress cannot be True"),
        ('{"progress": {"total": 3}}', "progress cannot be {'total': 3}"),
        ('{"totals": {"' + "x" * 201 + '": 1}}', "names of at most 200 letters"),
        ('{"totals": {"a": 1, "good": "many"}}', "total 'good' cannot be 'many'"),
        ('{"totals": {"a": 1}, "count": {"b": 1, "c": null}}', "total 'c' cannot be None"),
        ('{"totals": {"a": 1}, "count": {"b": 2}, "progress": "soon"}', "progress cannot be 'soon'"),
        ('{"totals": {"a": 1}, "progress": {"done": 1, "total": "x"}}', "progress.total cannot be 'x'"),
        ('{"totals": {"a": 1e308}, "count": {"a": 1e308}}', "total 'a' cannot be inf"),
        ("[" * 20_000, "recursion"),
    ],
    ids=lambda value: value[:24],
)
def test_a_line_that_cannot_be_read_is_told_and_does_no_harm(memory_app: Ostinato, line: str, why: str) -> None:
    run = reported(memory_app, '{"totals": {"good": 1}, "progress": "1/2"}', line)
    assert (run.totals, run.progress) == ({"good": 1}, Progress(1, 2)), "nothing of it counts"
    told = memory_app.runs.output(run.id)
    assert told.startswith("ostinato: a report could not be read (")
    assert why in told
    assert len(told) < 1_000


def test_totals_and_counts_of_one_line_are_added(memory_app: Ostinato) -> None:
    run = reported(
        memory_app, '{"count": {"a": 1}}', '{"totals": {"a": 5}, "count": {"a": 2, "b": 1}}', '{"count": {"a": 1}}'
    )
    assert run.totals == {"a": 8, "b": 1}


def test_it_can_be_read_while_the_script_runs(app: Ostinato, tmp_path: Path) -> None:
    app.start()
    go = tmp_path / "go"
    command = f"""
        echo '{{"progress": "1/2", "totals": {{"copied": 1}}}}' > $OSTINATO_REPORT
        until [ -e {go} ]; do sleep 0.02; done
        echo '{{"progress": "2/2"}}' > $OSTINATO_REPORT
    """
    run = app.enqueue(Shell(command))
    eventually(lambda: run.get().progress == Progress(1, 2))
    assert (run.get().state, run.get().totals) == (RunState.RUNNING, {"copied": 1})
    go.touch()
    assert run.wait(timeout=60).progress == Progress(2, 2)


def test_errors_in_totals_count_as_a_failure(memory_app: Ostinato, fake_clock: FakeClock) -> None:
    command = """echo '{"totals": {"errors": 2}}' > $OSTINATO_REPORT"""
    memory_app.schedules.add("copy", "every 1h", Shell(command), break_after=1)
    fake_clock.advance("1h")
    drain(memory_app)
    assert memory_app.schedules.get("copy").broken == "a scheduled run failed: it counted 2 errors"


def test_what_is_written_by_a_child_and_without_a_line_end_counts(memory_app: Ostinato) -> None:
    command = """sh -c 'printf %s "{\\"totals\\": {\\"a\\": 1}}" > $OSTINATO_REPORT'"""
    run = memory_app.enqueue(Shell(command))
    drain(memory_app)
    assert run.get().totals == {"a": 1}


def test_nobody_can_make_more_totals_than_a_row_should_hold(memory_app: Ostinato) -> None:
    command = """for i in $(seq 300); do echo "{\\"count\\": {\\"total$i\\": 1}}"; done > $OSTINATO_REPORT"""
    run = memory_app.enqueue(Shell(command))
    drain(memory_app)
    assert len(run.get().totals) == 100
    assert "a run has at most 100 totals" in memory_app.runs.output(run.id)


def test_many_writers_at_once_lose_nothing(memory_app: Ostinato) -> None:
    command = """
        for i in 1 2 3 4; do
            (for j in $(seq 250); do echo '{"count": {"lines": 1}}'; done > $OSTINATO_REPORT) &
        done
        wait
    """
    run = memory_app.enqueue(Shell(command))
    drain(memory_app)
    assert run.get().totals == {"lines": 1_000}


def test_its_pipe_is_private_and_gone_with_the_run(memory_app: Ostinato) -> None:
    run = memory_app.enqueue(Shell('echo "$OSTINATO_REPORT"; ls -l "$OSTINATO_REPORT"'))
    drain(memory_app)
    path, listed = memory_app.runs.output(run.id).splitlines()
    assert listed.startswith("prw-------")
    assert not os.path.exists(path)
    assert not os.path.exists(os.path.dirname(path))


def test_without_a_place_for_the_pipe_the_command_runs_all_the_same(
    memory_app: Ostinato, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(**_: object) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "mkdtemp", full)
    run = memory_app.enqueue(Shell("""echo '{"progress": 1}' > $OSTINATO_REPORT; echo done"""))
    drain(memory_app)
    assert run.get().state is RunState.SUCCEEDED
    told, done = memory_app.runs.output(run.id).splitlines()
    assert "there is no report channel, so progress and totals are lost: [Errno 28] No space left on device" in told
    assert done == "done"


def test_a_folder_that_somebody_tidied_away_is_made_again(memory_app: Ostinato, tmp_path: Path) -> None:
    memory_app.start()
    go = tmp_path / "go"
    first = memory_app.enqueue(
        Shell(f'rm -r "$(dirname "$OSTINATO_REPORT")"; echo ready; until [ -e {go} ]; do sleep 0.02; done')
    )
    eventually(lambda: "ready" in memory_app.runs.output(first.id))
    second = memory_app.enqueue(Shell("""echo '{"totals": {"a": 1}}' > $OSTINATO_REPORT""")).wait(timeout=60)
    assert second.totals == {"a": 1}
    go.touch()
    assert first.wait(timeout=60).state is RunState.SUCCEEDED
    eventually(lambda: private_places.PLACES.folder is None)


def test_what_a_killed_node_left_behind_is_tidied_away(tmp_path: Path) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    left = tmp_path / f"ostinato-{ended.pid}-abc"
    again = tmp_path / f"ostinato-{os.getpid()}-abc"  # as in a container, whose first process is always number 1
    other = tmp_path / "ostinato-else"
    for folder in (left, again, other):
        folder.mkdir()
        os.mkfifo(folder / "report-1")
    private_places._tidy(str(tmp_path))
    assert not left.exists()
    assert not again.exists()
    assert other.exists()


def test_a_node_that_lives_in_another_container_keeps_its_pipes(tmp_path: Path) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    theirs = tmp_path / f"ostinato-{ended.pid}-abc"  # there, the number is that of a living process
    theirs.mkdir()
    held = os.open(theirs, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    private_places._tidy(str(tmp_path))
    assert theirs.exists()
    os.close(held)
    private_places._tidy(str(tmp_path))
    assert not theirs.exists()


def test_a_folder_that_is_tidied_away_before_it_is_locked_is_made_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made: list[str] = []

    def make(*, prefix: str, dir: str | None) -> str:
        made.append(str(tmp_path / f"{prefix}{len(made)}"))
        os.mkdir(made[-1])
        if len(made) == 1:
            private_places._tidy(str(tmp_path))
        return made[-1]

    monkeypatch.setattr("tempfile.mkdtemp", make)
    places = private_places.PrivatePlaces()
    path = places.take("report", os.mkfifo)
    assert (places.folder, os.path.dirname(path), len(made)) == (made[1], made[1], 2)
    private_places._tidy(str(tmp_path))
    assert os.path.exists(path)
    places.give_back(path)


def test_the_folder_is_locked_while_it_is_in_use() -> None:
    places = private_places.PrivatePlaces()
    path = places.take("report", os.mkfifo)
    assert private_places._locked(os.path.dirname(path)) is None
    places.give_back(path)
    assert not os.path.exists(os.path.dirname(path))


def test_a_fork_makes_its_pipes_in_a_folder_of_its_own() -> None:
    ours = private_places.PLACES.take("report", os.mkfifo)
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        try:
            theirs = private_places.PLACES.take("report", os.mkfifo)
            os.write(write, theirs.encode())
            private_places.PLACES.give_back(theirs)
        finally:
            os._exit(0)
    os.close(write)
    with open(read, "rb") as answer:
        theirs = answer.read().decode()
    os.waitpid(child, 0)
    try:
        assert theirs.startswith(f"{os.path.dirname(os.path.dirname(ours))}/ostinato-{child}-")
        assert os.path.exists(ours)
        assert private_places._locked(os.path.dirname(ours)) is None, "the fork took the lock with it"
    finally:
        private_places.PLACES.give_back(ours)


def test_reports_that_come_fast_are_all_counted(memory_app: Ostinato) -> None:
    command = """for j in $(seq 8000); do echo '{"count": {"lines": 1}}'; done > $OSTINATO_REPORT"""
    run = memory_app.enqueue(Shell(command))
    drain(memory_app)
    assert run.get().totals == {"lines": 8_000}
    assert memory_app.runs.output(run.id) == ""


@pytest.mark.parametrize("line", ["x", '{"count":{"a":1}}', "", "x" * 200])
def test_a_flood_of_reports_holds_up_nobody_else(line: str) -> None:
    async def main() -> tuple[int, str]:
        context = RunContext.detached()
        turns = 0
        with ReportChannel.made(context) as path:
            flood = await asyncio.create_subprocess_shell(f"exec yes '{line}' > {path}")
            try:
                end = time.monotonic() + 1
                while time.monotonic() < end:
                    await asyncio.sleep(0.001)
                    turns += 1
            except BaseException:
                flood.kill()
                raise
        # It has ended though somebody is still writing.
        flood.kill()
        await flood.wait()
        return turns, output_text(context.take_report(final=True)[2])

    turns, output = asyncio.run(main())
    assert turns > 20, "each of them had to wait"
    assert len(output.splitlines()) < 10


def test_reports_that_do_not_end_are_read_more_slowly_and_that_is_told() -> None:
    async def main() -> RunContext:
        context = RunContext.detached()
        with contextlib.closing(ReportChannel(context, many=200)) as channel:
            pipe = os.open(channel.path, os.O_WRONLY | os.O_NONBLOCK)
            began = time.monotonic()
            os.write(pipe, b'{"count": {"a": 1}}\n' * 500)
            for _ in range(10_000):
                if context.totals.get("a") == 500:
                    break
                await asyncio.sleep(0.001)
            assert time.monotonic() - began > 0.2, "the last 300 take a millisecond each"
            os.close(pipe)
        return context

    context = asyncio.run(main())
    assert output_text(context.take_report(final=True)[2]).count("at most 1,000 reports are read in a second") == 1


def test_only_a_few_bad_lines_are_told(memory_app: Ostinato) -> None:
    run = reported(memory_app, *["nonsense"] * 50, '{"totals": {"a": 1}}')
    told = memory_app.runs.output(run.id).splitlines()
    assert len(told) == 6
    assert told[-1] == "ostinato: more reports could not be read; they are not listed one by one"
    assert run.totals == {"a": 1}
