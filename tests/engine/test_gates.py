"""Gates through the whole engine: a command before the work, which says whether there is anything to do."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from ostinato import Gate, Ostinato, Run, RunContext, RunState, Shell
from ostinato.testing import FakeClock, drain
from tests.conftest import tuned
from tests.engine.conftest import eventually
from tests.processes import lives

YES = """echo '{"wake": true}'"""


def asked(app: Ostinato, gate: str | Gate | list[str], command: str = "echo worked", **more: Any) -> Run:
    """Run a command behind this gate."""
    run = app.enqueue(Shell(command, **more), gate=gate, retry=0)
    drain(app)
    return run.get()


@pytest.mark.parametrize(
    "said", ['{"wake": true}', '{"wakeAgent": true}', '{"wake": true, "data": null, "more": 1}', ' {"wake":true} ']
)
def test_a_gate_that_says_yes_lets_the_work_run(memory_app: Ostinato, said: str) -> None:
    run = asked(memory_app, f"echo '{said}'")
    assert (run.state, run.reason) == (RunState.SUCCEEDED, None)
    assert memory_app.runs.output(run.id) == "worked\n"


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ('{"wake": false}', "the gate said no"),
        ('{"wakeAgent": false, "data": 1}', "the gate said no"),
        ('{"wake": false, "reason": "no new mail"}', "the gate said no: no new mail"),
        ('{"wake": false, "reason": 7}', "the gate said no"),
    ],
)
def test_a_gate_that_says_no_skips_the_run(app: Ostinato, said: str, reason: str) -> None:
    run = asked(app, f"echo '{said}'")
    assert (run.state, run.reason) == (RunState.SKIPPED, reason)
    assert app.runs.output(run.id) == ""


def test_its_data_goes_to_the_command(memory_app: Ostinato) -> None:
    gate = """echo '{"wake": true, "data": {"mails": [1, "zwei"]}}'"""
    run = asked(memory_app, gate, 'echo "$OSTINATO_GATE"')
    assert memory_app.runs.output(run.id) == '{"mails":[1,"zwei"]}\n'
    run = asked(memory_app, YES, 'echo "<$OSTINATO_GATE>"')
    assert memory_app.runs.output(run.id) == "<>\n"


@pytest.mark.parametrize(("letters", "state"), [(99_998, RunState.SUCCEEDED), (99_999, RunState.SKIPPED)])
def test_more_data_than_can_be_handed_on_is_a_failure_of_the_gate(
    memory_app: Ostinato, fake_clock: FakeClock, letters: int, state: RunState
) -> None:
    gate = f"""printf '{{"wake": true, "data": "'; head -c {letters} /dev/zero | tr '\\0' d; echo '"}}'"""
    memory_app.schedules.add("job", "every 1h", Shell("echo ${#OSTINATO_GATE}"), gate=gate, retry=0, break_after=1)
    fake_clock.advance("1h")
    drain(memory_app)
    run = memory_app.runs.list(schedule="job")[0]
    assert run.state is state
    if state is RunState.SKIPPED:
        told = "the gate failed: its data has 100,001 bytes, and at most 100,000 can be handed on"
        assert (run.reason or "").startswith(told)
        assert memory_app.schedules.get("job").broken is not None, "it counts"
    else:
        assert memory_app.runs.output(run.id) == "100000\n"


def test_its_data_goes_to_a_function(memory_app: Ostinato) -> None:
    seen: list[Any] = []

    @memory_app.task("job", gate="""echo '{"wake": true, "data": {"mails": 3}}'""")
    def job(run: RunContext) -> None:
        seen.append(run.gate)

    job.enqueue()
    drain(memory_app)
    assert seen == [{"mails": 3}]


def test_only_its_last_line_is_the_answer_and_all_else_is_output(memory_app: Ostinato) -> None:
    gate = """echo looking; echo '{"wake": false}'; echo hm >&2; echo '{"wake": true}'; echo; echo '  '"""
    run = asked(memory_app, gate)
    assert run.state is RunState.SUCCEEDED
    lines = memory_app.runs.output(run.id).splitlines()
    assert sorted(lines) == ["hm", "looking", "worked", '{"wake": false}']
    assert lines[-1] == "worked"


def test_an_answer_without_a_line_end_counts(memory_app: Ostinato) -> None:
    assert asked(memory_app, """printf 'looking\\n{"wake": true}'""").state is RunState.SUCCEEDED


def test_it_runs_where_the_work_does_with_what_the_work_has(memory_app: Ostinato, tmp_path: Path) -> None:
    gate = """echo "$PWD $LEVEL $OSTINATO_ATTEMPT" >&2; cat; echo '{"wake": false}'"""
    run = asked(memory_app, gate, folder=str(tmp_path), env={"LEVEL": "debug"})
    assert memory_app.runs.output(run.id) == f"{tmp_path} debug 1\n"


def test_a_list_runs_without_a_shell(memory_app: Ostinato) -> None:
    assert asked(memory_app, ["echo", '{"wake": false, "reason": "$HOME"}']).reason == "the gate said no: $HOME"


@pytest.mark.parametrize(
    ("gate", "reason"),
    [
        ("echo no host >&2; exit 3", "the gate failed: it exited with status 3: no host"),
        ("kill -KILL $$", "the gate failed: it was killed by SIGKILL"),
        ("true", 'the gate failed: it printed nothing; its last line must be JSON such as {"wake": true}'),
        ("echo hello", 'the gate failed: its last line is not JSON such as {"wake": true}: hello'),
        ("echo '[true]'", 'the gate failed: its last line has no "wake" that is true or false: [true]'),
        ("echo '{}'", 'the gate failed: its last line has no "wake" that is true or false: {}'),
        ("""echo '{"wake": 1}'""", 'has no "wake" that is true or false: {"wake": 1}'),
        (["no-such-gate-anywhere"], "the gate failed: there is no program 'no-such-gate-anywhere'"),
        (
            "head -c 3000000 /dev/zero | tr '\\0' '['",
            'the gate failed: its last line is not JSON such as {"wake": true}: it is longer than a megabyte',
        ),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_gate_that_fails_skips_the_run_and_says_why(memory_app: Ostinato, gate: str | list[str], reason: str) -> None:
    run = asked(memory_app, gate)
    assert run.state is RunState.SKIPPED
    assert reason in (run.reason or "")
    assert len(run.reason or "") < 300 + len(os.environ["PATH"])  # where it looked for a program is told


def test_gates_that_fail_break_the_schedule_and_a_no_does_not(memory_app: Ostinato, fake_clock: FakeClock) -> None:
    memory_app.schedules.add("bad", "every 1h", Shell("true"), gate="exit 1", break_after=2)
    memory_app.schedules.add("calm", "every 1h", Shell("true"), gate="""echo '{"wake": false}'""", break_after=2)
    for _ in range(3):
        fake_clock.advance("1h")
        drain(memory_app)
    bad, calm = memory_app.schedules.get("bad"), memory_app.schedules.get("calm")
    assert bad.broken == "2 scheduled runs failed in a row; the last: the gate failed: it exited with status 1"
    assert calm.broken is None
    assert [run.state for run in memory_app.runs.list(schedule="calm")] == [RunState.SKIPPED] * 3


@tuned(command_kill_seconds=0.2)
def test_a_gate_that_takes_too_long_is_ended_with_all_that_it_started(memory_app: Ostinato) -> None:
    stubborn = "trap '' TERM; sleep 600 & echo $! >&2; echo $$ >&2; while :; do sleep 0.01; done"
    pids: list[int] = []
    for seconds in (2, 8, 32):  # a busy machine needs longer until it has named its processes
        run = asked(memory_app, Gate(stubborn, timeout=f"{seconds}s"))
        assert (run.state, run.reason) == (RunState.SKIPPED, f"the gate failed: it took longer than {seconds}s")
        pids = [int(word) for word in memory_app.runs.output(run.id).split()]
        if len(pids) == 2:
            break
    assert len(pids) == 2
    assert not any(lives(pid) for pid in pids)


def test_a_cancel_ends_the_gate(memory_app: Ostinato) -> None:
    memory_app.start()
    run = memory_app.enqueue(Shell("echo worked"), gate="sleep 600 & echo $! $$ >&2; echo ready >&2; wait")
    eventually(lambda: "ready" in memory_app.runs.output(run.id))
    pids = [int(word) for word in memory_app.runs.output(run.id).split()[:2]]
    run.cancel()
    assert run.wait(timeout=60).state is RunState.CANCELLED
    eventually(lambda: not any(lives(pid) for pid in pids))
    assert "worked" not in memory_app.runs.output(run.id)


def test_the_gate_of_an_outer_run_is_not_taken_for_its_own(
    memory_app: Ostinato, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OSTINATO_GATE", "of another")
    monkeypatch.setenv("OSTINATO_REPORT", "of another")
    run = asked(memory_app, f'echo "$OSTINATO_GATE$OSTINATO_REPORT" >&2; {YES}', 'echo "<$OSTINATO_GATE>"')
    assert memory_app.runs.output(run.id) == "\n<>\n"
    run = memory_app.enqueue(Shell('echo "${OSTINATO_GATE-none}"')).get()
    drain(memory_app)
    assert memory_app.runs.output(run.id) == "none\n"


def test_a_secret_does_not_show_in_what_a_gate_says(memory_app: Ostinato, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN_OF_TEST", "hunter2-secret")
    gate = """echo "with $TOKEN"; echo "{\\"wake\\": false, \\"reason\\": \\"$TOKEN is old\\"}" """
    run = asked(memory_app, gate, env={"TOKEN": "env:TOKEN_OF_TEST"})
    assert (run.cause, run.reason) == ("gate", "the gate said no: *** is old")
    assert memory_app.runs.output(run.id) == "with ***\n"
    gate = """python3 -c 'import os; print("q" * 190 + os.environ["TOKEN"])'"""
    run = asked(memory_app, gate, env={"TOKEN": "env:TOKEN_OF_TEST"})
    assert (run.reason or "").endswith("qqq***")
