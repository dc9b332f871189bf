"""What a task prints or logs is output of its run, and goes where it would go without us."""

from __future__ import annotations

import asyncio
import io
import logging
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from ostinato import Ostinato, current_run
from ostinato.engine.node import Engine
from ostinato.execution.output_capture import output_capture
from ostinato.testing import drain
from tests.engine import process_tasks
from tests.engine.conftest import PATIENCE

log = logging.getLogger("shop")


def test_what_a_task_prints_and_logs_is_its_output_in_its_order_and_is_printed_too(
    app: Ostinato, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    @app.task("job")
    def job() -> None:
        print("one", 2)
        current_run().log("said")
        log.warning("stock of %s is low", "tea")
        print("three", file=sys.stderr)
        sys.stdout.writelines(["four\n", "five"])

    run = job.enqueue()
    drain(app)
    assert app.runs.output(run.id) == "one 2\nsaid\nWARNING shop: stock of tea is low\nthree\nfour\nfive"
    assert capsys.readouterr() == ("one 2\nfour\nfive", "three\n")
    assert [record.getMessage() for record in caplog.records if record.name == "shop"] == ["stock of tea is low"]


def test_runs_that_print_at_the_same_time_stay_apart(memory_app: Ostinato) -> None:
    @memory_app.task("speaks")
    async def speaks(name: str) -> None:
        async def aside() -> None:
            print(f"{name} aside")

        for number in range(3):
            print(name, number)
            await asyncio.sleep(0)
        await asyncio.gather(aside())
        await asyncio.to_thread(print, f"{name} from a thread")

    runs = [speaks.enqueue(name) for name in ("ada", "bob")]
    print("outside of any run")
    drain(memory_app)
    for run, name in zip(runs, ("ada", "bob"), strict=True):
        expected = [*(f"{name} {number}" for number in range(3)), f"{name} aside", f"{name} from a thread"]
        assert memory_app.runs.output(run.id).splitlines() == expected


def test_a_logged_exception_has_its_traceback_and_the_log_of_ostinato_is_no_output(
    memory_app: Ostinato, caplog: pytest.LogCaptureFixture
) -> None:
    @memory_app.task("job")
    async def job() -> None:
        logging.getLogger("ostinato.engine").error("ours")
        try:
            raise ValueError("no good")
        except ValueError:
            log.exception("it went wrong")
        log.debug("a detail")

    with caplog.at_level(logging.INFO):
        run = job.enqueue()
        drain(memory_app)
    first, second, *_, last = memory_app.runs.output(run.id).splitlines()
    assert (first, second) == ("ERROR shop: it went wrong", "Traceback (most recent call last):")
    assert last == "ValueError: no good"
    (record,) = [record for record in caplog.records if record.name == "shop"]
    assert record.getMessage() == "it went wrong"


def test_a_record_that_cannot_be_formatted_harms_neither_the_run_nor_its_output(
    memory_app: Ostinato, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Pytest's own handlers raise what they cannot format.
    monkeypatch.setattr(logging.getLogger(), "handlers", [logging.NullHandler()])

    @memory_app.task("job", retry=0)
    def job() -> None:
        log.error("%d", "text")
        print("goes on")

    run = job.enqueue()
    drain(memory_app)
    assert memory_app.runs.output(run.id) == "goes on\n"


def test_handlers_that_write_to_a_stream_of_ours_print_a_record_only_once(
    memory_app: Ostinato, capsys: pytest.CaptureFixture[str]
) -> None:
    @memory_app.task("job")
    def job() -> None:
        handler = logging.StreamHandler()  # on sys.stderr as it is now
        log.addHandler(handler)
        try:
            log.error("once")
        finally:
            log.removeHandler(handler)

    run = job.enqueue()
    drain(memory_app)
    assert memory_app.runs.output(run.id) == "ERROR shop: once\n"
    assert capsys.readouterr().err == "once\n"


def test_a_stream_that_a_task_puts_in_place_is_left_alone(memory_app: Ostinato) -> None:
    told = io.StringIO()

    @memory_app.task("job")
    def job() -> None:
        with redirect_stdout(told):
            print("into it")
        print("and out")

    run = job.enqueue()
    drain(memory_app)
    assert (told.getvalue(), memory_app.runs.output(run.id)) == ("into it\n", "and out\n")


def test_the_streams_are_as_before_when_the_last_engine_has_stopped(
    memory_app: Ostinato, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, after = io.StringIO(), io.StringIO()
    monkeypatch.setattr(output_capture, "_users", set())  # whatever engines other tests have left behind
    monkeypatch.setattr(sys, "stdout", before)
    memory_app.start()
    assert sys.stdout is not before
    assert sys.stdout.getvalue() == "", "it is one in all else"  # type: ignore[union-attr]
    memory_app.stop()
    assert sys.stdout is before

    memory_app.start()
    monkeypatch.setattr(sys, "stdout", after)
    memory_app.stop()
    assert sys.stdout is after, "what somebody else has put there since is not ours to take away"


def test_a_process_of_its_own_logs_into_the_output_at_the_level_of_the_node(memory_app: Ostinato) -> None:
    speak = memory_app.task("speak", isolation="process")(process_tasks.speak)
    run = speak.enqueue()

    async def execute(engine: Engine) -> None:
        before = logging.getLogger().level
        logging.getLogger().setLevel(logging.INFO)
        try:
            await engine.run_due()
        finally:
            logging.getLogger().setLevel(before)

    memory_app.with_engine(execute)
    assert memory_app.runs.output(run.id) == "printed\nINFO shop: told something\nwrong\n"


_PLAIN = """
import logging, sys
from ostinato import Ostinato

app = Ostinato("sqlite://:memory:")

@app.task(retry=0)
def job():
    print("printed")
    logging.getLogger("shop").info("not logged yet")
    logging.getLogger("shop").warning("careful")

@app.task(retry=0)
def bad():
    logging.getLogger("shop").info("logged now")
    raise ValueError("boom")

app.start()
assert not logging.getLogger().handlers
first = job.enqueue().wait(timeout="60s")
logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s %(message)s")
second = bad.enqueue().wait(timeout="60s")
outputs = [app.runs.output(run.id) for run in (first, second)]
app.stop()
print(outputs)
"""


_FORKS = """
import os
from ostinato import Ostinato

app = Ostinato("sqlite://:memory:")

@app.task(retry=0)
def job():
    print("before", flush=True)
    if (child := os.fork()) == 0:
        print("in the child", flush=True)
        os._exit(0)
    os.waitpid(child, 0)
    print("after", flush=True)

app.start()
run = job.enqueue().wait(timeout="60s")
print([run.state.value, app.runs.output(run.id)])
app.stop()
"""


def test_what_a_forked_child_prints_only_passes_through(tmp_path: Path) -> None:
    program = [sys.executable, "-W", "ignore", "-c", _FORKS]
    done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert done.stdout == "before\nin the child\nafter\n" + repr(["succeeded", "before\nafter\n"]) + "\n"


def test_an_application_sets_logging_up_when_it_likes_and_python_shows_its_warnings_until_then(tmp_path: Path) -> None:
    program = [sys.executable, "-c", _PLAIN]
    done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert done.stdout == "printed\n" + repr(["printed\nWARNING shop: careful\n", "INFO shop: logged now\n"]) + "\n"
    told = done.stderr.splitlines()
    assert told[0] == "careful"
    assert "INFO ostinato.runs run 2 of 'bad' started" in told
    assert told.count("INFO shop logged now") == 1
    assert "ValueError: boom" in told
