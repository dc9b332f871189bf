"""Secrets through the whole engine: what is missing, what is masked, and files that do not answer."""

from __future__ import annotations

import os
import pwd
import threading
from pathlib import Path
from typing import Any

import pytest

from ostinato import Http, Ostinato, Run, RunState, Shell
from ostinato.execution import preparation
from ostinato.models.work import Work
from ostinato.testing import drain
from ostinato.tuning import Tuning
from tests.engine.conftest import MakeApp

SECRET = "hunter2-secret"


def ended(app: Ostinato, work: Work, **policy: Any) -> tuple[Run, str]:
    """One run to its end, and its output."""
    run = app.enqueue(work, retry=0, **policy)
    drain(app)
    return run.get(), app.runs.output(run.id)


@pytest.fixture(autouse=True)
def token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN_OF_TEST", SECRET)


def test_the_password_of_the_database_is_never_shown(memory_app: Ostinato, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OSTINATO_DB", "postgresql://app:p%40ss-word@db/jobs")
    _, output = ended(memory_app, Shell("echo $OSTINATO_DB p@ss-word"))
    assert output == "postgresql://app:***@db/jobs ***\n"


def test_the_password_that_is_set_otherwise_is_not_shown_either(
    memory_app: Ostinato, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OSTINATO_DB", raising=False)
    monkeypatch.setattr(preparation, "passwords_in", lambda url: [SECRET] if url == "sqlite://:memory:" else [])
    assert ended(memory_app, Shell(f"echo {SECRET}"))[1] == "***\n"


def test_half_a_secret_does_not_show_where_an_error_was_cut(memory_app: Ostinato, tmp_path: Path) -> None:
    @memory_app.task("job", retry=0, gate="""echo '{"wake": true}'""")
    def job() -> None:
        raise ValueError("v" * 275 + SECRET + "w" * 20_000)

    memory_app.projects.add("blog", tmp_path, env={"T": "env:TOKEN_OF_TEST"})
    memory_app.schedules.add("s", "every 1h", job, project="blog")
    run = memory_app.schedules.trigger("s")
    drain(memory_app)
    found = memory_app.runs.get(run.id)
    assert (found.reason or "").endswith("vvv***…")
    assert "hunt" not in (found.attempts[0].error or "")


def test_a_reference_within_a_value_is_told(memory_app: Ostinato) -> None:
    run, output = ended(memory_app, Shell("echo worked", env={"URL": "postgres://u:env:TOKEN_OF_TEST@h"}))
    assert run.state is RunState.SUCCEEDED
    told, worked = output.splitlines()
    assert told.startswith("ostinato: URL has env:TOKEN_OF_TEST within its value, which is passed on unchanged")
    assert worked == "worked"


def test_a_reference_within_a_header_is_told(memory_app: Ostinato) -> None:
    _, output = ended(memory_app, Http("GET", "http://127.0.0.1:9/", headers={"A": "Token token=env:TOKEN_OF_TEST"}))
    assert output.startswith("ostinato: A has env:TOKEN_OF_TEST within its value")


def test_a_request_has_no_environment_and_misses_nothing_of_it(memory_app: Ostinato, tmp_path: Path) -> None:
    memory_app.projects.add("blog", tmp_path, env={"T": "env:NOT_THERE_AT_ALL"})
    work = Http("GET", "http://127.0.0.1:9/")
    run, _ = ended(memory_app, work, project="blog")
    assert "loopback" in (run.reason or ""), "it came as far as the address"
    run, _ = ended(memory_app, work, project="blog", gate="true")
    assert "has no NOT_THERE_AT_ALL" in (run.reason or ""), "its gate has one"


def test_a_pipe_in_place_of_a_file_is_told_at_once(memory_app: Ostinato, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    run, _ = ended(memory_app, Shell("true", env={"T": f"file:{tmp_path}/pipe"}))
    assert run.state is RunState.FAILED
    assert f"{tmp_path}/pipe cannot be read: it is not a plain file" in (run.reason or "")


def test_a_disk_that_does_not_answer_holds_up_nobody_else(
    memory_app: Ostinato, make_app: MakeApp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a hung network drive: the look at the folder does not return."""
    far, answers, asked = tmp_path / "far", threading.Event(), threading.Event()
    is_dir = Path.is_dir

    def hang(path: Path) -> bool:
        if path != far:
            return is_dir(path)
        asked.set()
        return answers.wait(20)

    monkeypatch.setattr(Path, "is_dir", hang)
    try:
        memory_app.start()
        hung = memory_app.enqueue(Shell("true", folder=str(far)), retry=0)
        assert asked.wait(10)
        other = memory_app.enqueue(Shell("true"))
        assert other.wait(timeout=60).state is RunState.SUCCEEDED
        assert hung.get().state is RunState.RUNNING
        hung.cancel()
        assert hung.wait(timeout=60).state is RunState.CANCELLED
        hasty = make_app("sqlite://:memory:", tuning=Tuning(folder_seconds=0.05)).start()
        late = hasty.enqueue(Shell("true", folder=str(far)), retry=0).wait(timeout=60)
        assert late.state is RunState.FAILED
        assert f"nothing was heard of {far}" in (late.reason or "")
    finally:
        answers.set()


def test_a_command_of_another_user_gets_little_of_the_engines_environment(
    memory_app: Ostinato, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As root somebody else, otherwise oneself: it is the same way."""
    user = pwd.getpwnam("nobody") if os.geteuid() == 0 else pwd.getpwuid(os.geteuid())
    monkeypatch.setenv("LC_OF_TEST", "harmless")
    monkeypatch.setenv("OSTINATO_TOKEN", "ost_of-the-engine")
    monkeypatch.setenv("OSTINATO_DB", "postgresql://app:p%40ss-word@db/jobs")
    gate = f"""echo $TOKEN_OF_TEST > {tmp_path}/gate; echo '{{"wake": true}}'"""
    work = Shell("env", user=user.pw_name, folder="/", env={"OWN": "1", "GIVEN": "env:TOKEN_OF_TEST"})
    run, output = ended(memory_app, work, gate=gate)
    assert run.state is RunState.SUCCEEDED, run.reason
    variables = dict(line.split("=", 1) for line in output.splitlines())
    assert "TOKEN_OF_TEST" not in variables
    assert "OSTINATO_DB" not in variables
    assert (variables["OWN"], variables["GIVEN"], variables["PATH"]) == ("1", "***", os.environ["PATH"])
    assert (variables["LC_OF_TEST"], variables.get("OSTINATO_TOKEN")) == ("harmless", None)
    assert variables["OSTINATO_RUN_ID"] == str(run.id)
    assert (tmp_path / "gate").read_text() == f"{SECRET}\n", "a gate runs as the engine does"
    assert "TOKEN_OF_TEST=" in ended(memory_app, Shell("env"))[1], "so it is without a user"
