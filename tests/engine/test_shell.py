"""Shell commands through the whole engine: their output, their ends, their limits, and that nothing of them is left."""

from __future__ import annotations

import asyncio
import os
import pwd
import threading
from pathlib import Path
from typing import Any

import pytest

from ostinato import Ostinato, Retry, Run, RunState, Shell
from ostinato.execution.executors import shell, starting
from ostinato.testing import FakeClock, drain
from tests.conftest import tuned
from tests.engine.conftest import MakeApp, engine_of, eventually, on_shared
from tests.processes import lives


def ended(app: Ostinato, command: str | list[str], **fields: Any) -> Run:
    """Run a command once, to its end."""
    policy = {"retry": fields.pop("retry", 0), "timeout": fields.pop("timeout", "5m")}
    run = app.enqueue(Shell(command, **fields), **policy)
    drain(app)
    return run.get()


def output_of(app: Ostinato, command: str | list[str], **fields: Any) -> str:
    """What a command prints that succeeds."""
    run = ended(app, command, **fields)
    assert run.state is RunState.SUCCEEDED, run.reason
    return app.runs.output(run.id)


def begun(app: Ostinato, run_id: int, words: str) -> list[int]:
    """Wait until a running command has printed this; answers the numbers that it has printed."""
    eventually(lambda: words in app.runs.output(run_id))
    return [int(word) for word in app.runs.output(run_id).split() if word.isdigit()]


# Output.


def test_a_command_succeeds_and_what_it_printed_is_kept(app: Ostinato) -> None:
    app.schedules.add("hello", "every 1h", Shell("echo hello; echo world >&2"))
    id = app.schedules.trigger("hello").id
    drain(app)
    run = app.runs.get(id)
    assert (run.state, run.reason, run.result) == (RunState.SUCCEEDED, None, {"exit_code": 0})
    assert app.runs.output(id) == "hello\nworld\n"
    assert [(line.number, line.text) for line in app.runs.lines(id)] == [(1, "hello"), (2, "world")]
    assert all(line.at is not None for line in app.runs.lines(id))


def test_a_text_goes_through_a_shell_and_a_list_does_not(memory_app: Ostinato) -> None:
    assert output_of(memory_app, "echo $((1 + 1)) | cat") == "2\n"
    assert output_of(memory_app, ["echo", "$((1 + 1))", "; rm -rf"]) == "$((1 + 1)) ; rm -rf\n"


def test_a_line_can_be_read_before_it_is_finished_and_while_the_command_runs(app: Ostinato, tmp_path: Path) -> None:
    app.start()
    go = tmp_path / "go"
    run = app.enqueue(Shell(f"echo one; printf tw; until [ -e {go} ]; do sleep 0.02; done; echo o"))
    eventually(lambda: app.runs.output(run.id) == "one\ntw")
    assert run.get().state is RunState.RUNNING
    go.touch()
    run.wait(timeout=60)
    assert app.runs.output(run.id) == "one\ntwo\n"


def test_the_end_of_much_output_can_be_read_while_the_command_runs(app: Ostinato, tmp_path: Path) -> None:
    app.start()
    go = tmp_path / "go"
    run = app.enqueue(Shell(f"seq 300000; echo last words; until [ -e {go} ]; do sleep 0.02; done"))
    eventually(lambda: "last words" in app.runs.output(run.id))
    seen = app.runs.output(run.id)
    assert seen.startswith("1\n2\n3\n")
    assert seen.endswith("299999\n300000\nlast words\n")
    go.touch()
    assert run.wait(timeout=60).state is RunState.SUCCEEDED


def test_ten_megabytes_are_cut_in_the_middle_and_a_line_says_so(memory_app: Ostinato) -> None:
    app = memory_app
    run = ended(app, "seq -f '%9.0f' 1000000")
    lines = app.runs.lines(run.id)
    cut = next(position for position, line in enumerate(lines) if line.number is None)
    assert lines[cut].text.endswith(" bytes cut …")
    assert all(int(line.text) == line.number for line in lines if line.number is not None)
    assert (lines[0].number, lines[-1].number) == (1, 1_000_000)
    assert 900_000 < len(app.runs.output(run.id)) < 1_000_100


def test_the_settings_say_how_much_is_kept(make_app: MakeApp) -> None:
    app = make_app("sqlite://:memory:", output_cap=1_000)
    run = ended(app, "seq 100000")
    assert len(app.runs.output(run.id)) < 1_100


# Ends.


@pytest.mark.parametrize(
    ("command", "reason", "code"),
    [
        ("exit 3", "exited with status 3", 3),
        ("echo reading; echo 'no such host' >&2; echo; exit 1", "exited with status 1: no such host", 1),
        ("kill -KILL $$", "was killed by SIGKILL", 137),
        ("kill -SEGV $$", "was killed by SIGSEGV", 139),
        (r"printf '\033[1;31mred\033[0m alert\033]0;title\007'; exit 1", "exited with status 1: red alert", 1),
        ("no-such-command-anywhere", "no-such-command-anywhere: command not found", 127),
    ],
)
def test_a_failure_says_how_it_ended_and_what_it_said_last(
    memory_app: Ostinato, command: str, reason: str, code: int
) -> None:
    run = ended(memory_app, command)
    assert (run.state, run.result) == (RunState.FAILED, {"exit_code": code})
    assert reason in (run.reason or "")


def test_a_failure_is_tried_again(app: Ostinato, tmp_path: Path, fake_clock: FakeClock) -> None:
    command = f"echo try $OSTINATO_ATTEMPT; echo $OSTINATO_KEY >> {tmp_path}/keys; [ $OSTINATO_ATTEMPT = 2 ]"
    run = app.enqueue(Shell(command), retry=Retry(2, base="1m", longest="1m", spread=0))
    drain(app)
    assert "exited with status 1: try 1" in (run.get().reason or "")
    fake_clock.advance("1m")
    drain(app)
    assert (run.get().state, run.get().attempt) == (RunState.SUCCEEDED, 2)
    assert app.runs.output(run.id) == "try 1\ntry 2\n"
    first, second = (tmp_path / "keys").read_text().split()
    assert first == second == run.get().key


def test_what_cannot_be_started_is_not_tried_again_and_says_why(memory_app: Ostinato) -> None:
    run = ended(memory_app, ["no-such-program-anywhere"], retry=3)
    assert (run.state, run.attempt) == (RunState.FAILED, 1)
    assert "there is no program 'no-such-program-anywhere'; looked in PATH" in (run.reason or "")


def test_a_missing_folder_is_a_readable_end(memory_app: Ostinato, tmp_path: Path) -> None:
    run = ended(memory_app, "true", folder=str(tmp_path / "none"))
    assert run.state is RunState.FAILED
    assert f"its folder, {tmp_path}/none, does not exist on this node: make it" in (run.reason or "")


# ProcessEnvironment.


def test_it_runs_in_its_folder_with_its_environment(memory_app: Ostinato, tmp_path: Path) -> None:
    printed = output_of(memory_app, "pwd; echo $LEVEL", folder=str(tmp_path), env={"LEVEL": "debug"})
    assert printed == f"{tmp_path}\ndebug\n"


def test_it_finds_who_it_is_in_its_environment(memory_app: Ostinato, fake_clock: FakeClock) -> None:
    names = ("RUN_ID", "SCHEDULE", "DUE_AT", "ATTEMPT", "KEY")
    memory_app.schedules.add("nightly", "every 1h", Shell("; ".join(f"echo $OSTINATO_{name}" for name in names)))
    fake_clock.advance("1h")
    drain(memory_app)
    (run,) = memory_app.runs.list(schedule="nightly")
    due = f"{run.due_at:%Y-%m-%dT%H:%M:%SZ}"
    assert memory_app.runs.output(run.id).split() == [str(run.id), "nightly", due, "1", run.key]


def test_a_secret_is_there_but_never_shown(
    memory_app: Ostinato, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN_OF_TEST", "hunter2-secret")
    (tmp_path / "password").write_text("open-sesame\n")
    command = """
        [ "${#TOKEN}" = 14 ] && [ "${#PASSWORD}" = 11 ] || exit 9
        echo "token $TOKEN"; printf "${PASSWORD%sesame}"; printf 'sesame\\n'
        printf '{"progress": {"done": 1, "text": "with %s"}}\\n' "$PASSWORD" > $OSTINATO_REPORT
        echo "not allowed: $TOKEN" >&2
        exit 1
    """
    secrets = {"TOKEN": "env:TOKEN_OF_TEST", "PASSWORD": f"file:{tmp_path}/password"}
    run = ended(memory_app, command, env=secrets)
    assert run.reason == "exited with status 1: not allowed: ***"
    assert memory_app.runs.output(run.id) == "token ***\n***\nnot allowed: ***\n"
    assert run.progress is not None
    assert run.progress.text == "with ***"
    assert "hunter2" not in repr(run)


def test_a_secret_that_is_not_there_is_told(memory_app: Ostinato) -> None:
    run = ended(memory_app, "true", env={"TOKEN": "env:NO_SUCH_VARIABLE"})
    assert "TOKEN is env:NO_SUCH_VARIABLE, but the engine's environment has no NO_SUCH_VARIABLE" in (run.reason or "")


# Limits.


def test_it_can_be_nice(memory_app: Ostinato) -> None:
    assert int(output_of(memory_app, "nice", nice=7)) == min(os.nice(0) + 7, 19)
    assert int(output_of(memory_app, ["nice"], nice=7)) == min(os.nice(0) + 7, 19)


def test_its_memory_and_processor_time_can_be_bounded(memory_app: Ostinato) -> None:
    printed = output_of(memory_app, "ulimit -v; ulimit -S -t; ulimit -H -t; nice", memory="512MB", cpu="7s", nice=3)
    assert [int(line) for line in printed.split()[:3]] == [512 * 1024, 7, 12]


def test_too_much_memory_is_refused_by_the_system(memory_app: Ostinato) -> None:
    run = ended(memory_app, ["python3", "-c", "print(len(bytes(10**9)))"], memory="200MB")
    assert (run.state, run.reason) == (RunState.FAILED, "exited with status 1: MemoryError")


@pytest.mark.parametrize("command", ["while :; do :; done", "sh -c 'while :; do :; done'; exit $?"])
def test_used_up_processor_time_is_told(memory_app: Ostinato, command: str) -> None:
    run = ended(memory_app, command, cpu=1)
    assert run.state is RunState.FAILED
    assert (run.reason or "").endswith(": it used up its 1 s of processor time")
    assert run.result == {"exit_code": 152}


@pytest.mark.parametrize("limit", [{"nice": 5}, {"memory": "512MB"}, {"cpu": "7s"}], ids=str)
@pytest.mark.parametrize("program", ["no-such-program-anywhere", "./no-such-script"])
def test_with_a_limit_a_missing_program_is_named_as_without(
    memory_app: Ostinato, limit: dict[str, Any], program: str
) -> None:
    run = ended(memory_app, [program], retry=3, **limit)
    assert run.reason == ended(memory_app, [program]).reason
    assert (run.state, run.attempt, run.result) == (RunState.FAILED, 1, None)


def test_only_root_can_be_less_nice(memory_app: Ostinato, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 12_345)
    run = ended(memory_app, "true", nice=-5)
    assert (run.state, run.reason) == (RunState.FAILED, "nice=-5 needs root, and it runs as uid 12345: give 0 to 19")


def test_another_user_must_exist(memory_app: Ostinato) -> None:
    run = ended(memory_app, "true", user="nobody-of-this-name")
    assert "there is no user 'nobody-of-this-name' on this machine" in (run.reason or "")


def test_as_a_user_it_has_that_users_home(memory_app: Ostinato) -> None:
    """As root somebody else, otherwise oneself: it is the same way."""
    user = pwd.getpwnam("nobody") if os.geteuid() == 0 else pwd.getpwuid(os.geteuid())
    command = 'echo $HOME $USER $LOGNAME; id -un; echo \'{"totals": {"a": 1}}\' > "$OSTINATO_REPORT"'
    run = ended(memory_app, command, user=user.pw_name, folder="/")
    assert run.state is RunState.SUCCEEDED, run.reason
    expected = f"{user.pw_dir} {user.pw_name} {user.pw_name}\n{user.pw_name}\n"
    assert memory_app.runs.output(run.id) == expected
    assert run.totals == {"a": 1}


def test_another_user_gets_nothing_that_the_engine_alone_may_know(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = pwd.getpwnam("nobody") if os.geteuid() == 0 else pwd.getpwuid(os.geteuid())
    for name in ("OSTINATO_TOKEN", "OSTINATO_DB", "OSTINATO_TRUST", "OSTINATO_AGENT_PROMPT", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "not-for-you")
    app = make_app("sqlite://:memory:")
    run = app.execute(Shell("env | cut -d= -f1 | grep OSTINATO_ | sort; env", user=user.pw_name, folder="/"))
    output = app.runs.output(run.id)
    assert "not-for-you" not in output
    known = (
        *("ATTEMPT", "DUE_AT", "DUE_AT_LOCAL", "KEY", "NODE"),
        *("OUTER_RUNS", "PROJECT", "REPORT", "RUN_ID", "SCHEDULE", "TZ"),
    )
    assert output.split()[: len(known)] == [f"OSTINATO_{name}" for name in known]


# Stopping.


def test_on_timeout_which_is_five_minutes_all_of_it_is_ended(memory_app: Ostinato, fake_clock: FakeClock) -> None:
    memory_app.start()
    run = memory_app.enqueue(Shell("sleep 600 & echo $! $$; echo ready; wait"), retry=0)
    pids = begun(memory_app, run.id, "ready")
    fake_clock.advance("299s")
    assert run.get().state is RunState.RUNNING
    fake_clock.advance("1s")
    ended = run.wait(timeout=60)
    assert (ended.state, ended.reason) == (RunState.FAILED, "timed out after 5m")
    assert not any(lives(pid) for pid in pids)


def test_a_cancel_in_the_words_of_an_interrupt_is_a_cancel(memory_app: Ostinato) -> None:
    memory_app.start()
    run = memory_app.enqueue(Shell("echo ready; exec sleep 600"))
    begun(memory_app, run.id, "ready")
    words = "interrupted by a newer message of its session, as one wrote"
    memory_app.runs.cancel(run.id, reason=words)
    ended = run.wait(timeout=60)
    assert (ended.state, ended.cause, ended.reason) == (RunState.CANCELLED, "cancelled", words)


def test_a_cancel_ends_all_of_it_and_keeps_what_it_said(memory_app: Ostinato) -> None:
    memory_app.start()
    run = memory_app.enqueue(
        Shell("trap 'echo tidied up; exit 0' TERM; echo $$; echo ready; while :; do sleep 0.01; done")
    )
    pids = begun(memory_app, run.id, "ready")
    run.cancel()
    assert run.wait(timeout=60).state is RunState.CANCELLED, "though it exited with status 0, because it was told to"
    assert memory_app.runs.output(run.id).endswith("tidied up\n")
    assert not any(lives(pid) for pid in pids)


def test_what_is_told_to_stop_before_its_turn_has_come_is_stopped(
    memory_app: Ostinato, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go = threading.Event(), threading.Event()

    async def late(_: object) -> None:
        begun.set()
        await asyncio.to_thread(go.wait, 60)

    monkeypatch.setattr(starting._Turns, "wait", late)
    memory_app.start()
    run = memory_app.enqueue(Shell("sleep 600"))
    assert begun.wait(60)
    run.cancel()
    runner = engine_of(memory_app).runner
    eventually(lambda: any(active.stop for active in runner._active.values()))
    go.set()
    assert run.wait(timeout=60).state is RunState.CANCELLED


@on_shared
def test_a_drain_puts_it_back_and_the_next_node_starts_it_from_the_beginning(shared_db: str, make_app: MakeApp) -> None:
    app, reader = make_app(shared_db), make_app(shared_db)
    app.start()
    run = app.enqueue(Shell("echo $$; echo ready; sleep 600"), retry=1)
    pids = begun(reader, run.id, "ready")
    stopping = threading.Thread(target=app.stop, kwargs={"grace": "100ms"})
    stopping.start()
    stopping.join(60)
    assert not stopping.is_alive()
    assert reader.runs.get(run.id).state is RunState.QUEUED
    assert not any(lives(pid) for pid in pids)
    other = make_app(shared_db)
    other.start()
    eventually(lambda: other.runs.get(run.id).state is RunState.RUNNING)
    assert other.runs.get(run.id).attempt == 2
    other.runs.cancel(run.id)
    other.runs.wait(run.id, timeout=60)


@tuned(command_kill_seconds=0.2)
def test_an_app_can_be_stopped_at_once_and_nothing_lives_on(memory_app: Ostinato) -> None:
    memory_app.start()
    run = memory_app.enqueue(Shell("trap '' TERM; echo $$; echo ready; while :; do sleep 0.01; done"))
    pids = begun(memory_app, run.id, "ready")
    memory_app.stop(grace=0)
    eventually(lambda: not any(lives(pid) for pid in pids))


def test_many_at_once_end_each_with_its_own_status(make_app: MakeApp) -> None:
    app = make_app("sqlite://:memory:", lanes={"main": 50})
    runs = [app.enqueue(Shell(f"echo {number}; exit {number % 3}"), retry=0) for number in range(120)]
    drain(app)
    for number, run in enumerate(runs):
        assert run.get().result == {"exit_code": number % 3}
        assert app.runs.output(run.id) == f"{number}\n"


def test_a_command_whose_supervisor_was_killed_has_failed(memory_app: Ostinato) -> None:
    run = ended(memory_app, "echo bad; kill -9 $PPID; sleep 600")
    assert (run.state, run.result) == (RunState.FAILED, None)
    assert "the process that supervised it was killed" in (run.reason or "")


def test_whatever_breaks_in_here_the_run_has_its_end(memory_app: Ostinato, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> list[str]:
        raise RuntimeError("what is this?")

    with monkeypatch.context() as patch:
        patch.setattr(shell, "_limited", broken)
        run = ended(memory_app, "true")
    assert (run.state, run.reason) == (RunState.FAILED, "its command was lost: RuntimeError: what is this?")
    assert ended(memory_app, "true").state is RunState.SUCCEEDED
