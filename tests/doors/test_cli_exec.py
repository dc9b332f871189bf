"""`ostinato exec`: live output, exit codes, signals, and the row that it leaves in the ledger."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ostinato.signal_reader import FORCED_END
from tests.doors.command_line import PATIENT, PROGRAM, STUBBORN, CommandLine, eventually
from tests.engine.http_server import answer as answered
from tests.engine.http_server import serving
from tests.processes import lives

AGENT = r"""
import re, sys

prompt = sys.stdin.read()
print("thinking about", prompt.splitlines()[-1], flush=True)
report = re.search(r"\S+-report\.md", prompt)[0]
open(report, "w").write("# What I did\n\nNothing at all.\n")
print("the answer")
"""

OBEDIENT = """
import signal, sys, time

def obey(*_):
    print("cleaned up", flush=True)
    sys.exit(1)

signal.signal(signal.SIGTERM, obey)
print("begun", flush=True)
time.sleep(60)
"""

TALKING = """
import logging

from ostinato import Ostinato

app = Ostinato()


@app.task
def talk():
    logging.getLogger("talking").warning("'ostinato run ls' has it")
"""

RETRYING = """
from ostinato import Ostinato

app = Ostinato()


@app.task("flaky", retry=5)
def flaky():
    raise ValueError("no good")
"""


RETURNING = """
from ostinato import Ostinato

app = Ostinato()


@app.task("answer")
def answer(what):
    print("thinking")
    return {"text": "two\\nlines \\x1b[2J", "count": {"copied": 3}, "nothing": None}[what]
"""


@pytest.mark.parametrize(
    ("command", "code", "reason"),
    [
        ("exit 0", 0, None),
        ("exit 7", 7, "exited with status 7"),
        ("echo no good; exit 3", 3, "exited with status 3: no good"),
        ("kill -9 $$", 137, "was killed by SIGKILL"),
        ("no-such-program", 127, "exited with status 127"),
        ('["no-such-program"]', 1, "there is no program 'no-such-program'"),
    ],
)
def test_the_exit_code_is_that_of_the_command(cli: CommandLine, command: str, code: int, reason: str | None) -> None:
    answer = cli("exec", "--shell", command)
    assert answer.code == code
    (run,) = cli.ok("run", "ls", "--json").json
    assert (run["state"], run["trigger"]) == ("failed" if code else "succeeded", "manual")
    assert (reason or "run 1 succeeded") in answer.err
    assert reason is None or reason in run["reason"]


def test_output_is_data_and_the_rest_is_talk(cli: CommandLine) -> None:
    answer = cli.ok("exec", "--shell", "echo one; echo two >&2; printf three")
    assert answer.out == "one\ntwo\nthree\n"
    assert answer.err == "run 1 begins\nrun 1 succeeded\n"
    assert cli.ok("run", "logs", "1").out == answer.out


def test_json_is_a_line_for_each_line_and_then_the_run(cli: CommandLine) -> None:
    *lines, run = [
        json.loads(line) for line in cli.ok("exec", "--shell", "echo one; echo two", "--json").out.splitlines()
    ]
    assert [list(line) for line in lines] == [["id", "number", "at", "line"]] * 2
    assert [(line["id"], line["number"], line["line"]) for line in lines] == [(1, 1, "one"), (1, 2, "two")]
    shown = cli.ok("run", "show", "1", "--json").json
    assert shown.pop("blocked_by") is None
    assert run == shown
    assert run["result"] == {"exit_code": 0}


def test_output_comes_while_the_command_runs(cli: CommandLine) -> None:
    (cli.folder / "go").unlink(missing_ok=True)
    command = "echo first; printf 'not yet'; while [ ! -e go ]; do sleep 0.05; done; echo ' but now'"
    with cli.start("exec", "--shell", command) as running:
        eventually(lambda: running.out == "first\n", "the first line is shown")
        (run,) = cli.ok("run", "ls", "--json").json
        assert run["state"] == "running"
        assert cli.ok("run", "logs", "1").out.startswith("first\n")
        (cli.folder / "go").touch()
        assert running.wait() == 0
        assert running.out == "first\nnot yet but now\n"


def test_it_runs_in_the_current_folder_which_is_recorded(cli: CommandLine) -> None:
    (cli.folder / "sub").mkdir()
    here = cli.folder.resolve()
    assert cli.ok("exec", "--shell", "pwd -P").out == f"{here}\n"
    assert cli.ok("exec", "--shell", "pwd -P", "--folder", "sub").out == f"{here / 'sub'}\n"
    folders = [run["work"]["folder"] for run in cli.ok("run", "ls", "--json").json]
    assert folders == [str(cli.folder / "sub"), str(cli.folder)]
    cli.ok("project", "add", "blog", "sub", "--env", "WHO=blog")
    assert cli.ok("exec", "--shell", "pwd -P; echo $WHO $X", "--project", "blog", "--env", "X=1").out == (
        f"{here / 'sub'}\nblog 1\n"
    )
    missing = cli("exec", "--shell", "true", "--folder", "nowhere")
    assert (missing.code, "nowhere" in missing.err) == (1, True)


def test_a_run_without_a_schedule_is_listed_and_shown_by_what_it_does(cli: CommandLine) -> None:
    cli.ok("exec", "--shell", "echo one;\necho \x1b[31mtwo", "--nice", "3")
    assert " echo one; echo  [31mtwo" in cli.ok("run", "ls").out
    shown = cli.ok("run", "show", "1").out
    assert "\x1b" not in shown
    assert "work: shell echo one;\n" in shown
    assert "nice 3" in shown
    assert 'result: {"exit_code": 0}' in shown
    assert "output: 2 lines; 'ostinato run logs 1' prints it" in shown
    assert "attempt 1: succeeded" in shown


def test_a_timeout_ends_it_with_1(cli: CommandLine) -> None:
    answer = cli("exec", "--shell", "sleep 60", "--timeout", "200ms")
    assert (answer.code, answer.out) == (1, "")
    assert "run 1 failed: timed out after 200ms" in answer.err


def test_more_output_than_is_kept_is_told_where_it_is_missing_and_once_as_talk(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OSTINATO_OUTPUT_CAP", "4000")
    answer = cli.ok("exec", "--shell", "seq 100000")
    assert answer.err.count("it prints more than the setting output_cap") == 1
    cuts = [line for line in answer.out.splitlines() if not line.isdecimal()]
    assert cuts
    assert all(line.endswith(" bytes cut …") for line in cuts)
    assert answer.out.endswith("\n100000\n")


def test_a_gate_can_say_no(cli: CommandLine) -> None:
    no = cli("exec", "--shell", "echo ran", "--gate", """echo '{"wake": false}'""")
    assert (no.code, no.out) == (1, "")
    assert "run 1 skipped: " in no.err
    yes = cli("exec", "--shell", "echo ran $OSTINATO_GATE", "--gate", """echo '{"wake": true, "data": [1]}'""")
    assert (yes.code, yes.out.splitlines()[-1]) == (0, "ran [1]")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_cancels_it_and_waits_for_its_end(cli: CommandLine, number: signal.Signals) -> None:
    with cli.start("exec", "--shell", json.dumps([sys.executable, "-c", OBEDIENT])) as running:
        eventually(lambda: "begun" in running.out, "the command runs")
        running.signal(number)
        assert running.wait() == 130
    assert running.out == "begun\ncleaned up\n"
    assert "run 1 cancelled: interrupted" in running.err
    assert "Traceback" not in running.err
    assert cli.ok("run", "show", "1", "--json").json["state"] == "cancelled"


def test_a_second_signal_leaves_nothing_of_a_command_that_does_not_obey(cli: CommandLine) -> None:
    command = "trap '' TERM INT; echo $$ > pid; echo begun; while :; do sleep 0.05; done"
    (cli.folder / "patient.py").write_text("from ostinato import Ostinato\n\napp = Ostinato()\n" + PATIENT)
    with cli.start("exec", "--shell", command, "--app", "patient:app") as running:
        eventually(lambda: "begun" in running.out, "the command runs")
        running.signal(signal.SIGINT)
        eventually(lambda: "told to stop" in running.err, "the first signal asks")
        running.signal(signal.SIGINT)
        assert running.wait(60) == 130
    pid = int((cli.folder / "pid").read_text())
    eventually(lambda: not lives(pid), "the command is gone")
    assert cli.ok("run", "show", "1", "--json").json["state"] == "cancelled"


@pytest.mark.parametrize("task", ["block", "hidden", "deaf"])
def test_a_second_signal_ends_a_task_that_holds_the_loop(cli: CommandLine, task: str) -> None:
    (cli.folder / "stubborn.py").write_text(STUBBORN)
    with cli.start("exec", "--task", task, "--app", "stubborn:app") as running:
        eventually((cli.folder / "begun").exists, "the task runs")
        running.signal(signal.SIGINT)
        running.signal(signal.SIGTERM)  # another one: two of the same may become one
        assert running.wait(60) == 130
    assert running.err.splitlines()[-1] == FORCED_END


def test_a_reader_that_goes_away_ends_the_command(cli: CommandLine) -> None:
    command = [*PROGRAM, "exec", "--shell", "while :; do echo line; sleep 0.02; done"]
    with (
        (cli.folder / "err").open("w") as err,
        subprocess.Popen(command, cwd=cli.folder, stdout=subprocess.PIPE, stderr=err, text=True) as process,
    ):
        assert process.stdout is not None
        assert process.stdout.readline() == "line\n"
        process.stdout.close()
        try:
            assert process.wait(30) == 0
        finally:
            process.kill()
    assert "Traceback" not in (cli.folder / "err").read_text()
    run = cli.ok("run", "show", "1", "--json").json
    assert (run["state"], run["reason"]) == ("cancelled", "nobody reads its output any more")


def test_a_task_of_the_app_is_run_here_and_only_once(cli: CommandLine) -> None:
    (cli.folder / "retrying.py").write_text(RETRYING)
    assert cli.ok("exec", "--task", "hello", "--arg", "name=you", "--app", "jobs:app").code == 0
    assert cli.ok("run", "show", "1", "--json").json["result"] == {"greeted": "you"}
    failed = cli("exec", "--task", "flaky", "--app", "retrying:app")
    assert (failed.code, "run 2 failed: ValueError: no good" in failed.err) == (1, True)
    assert cli("exec", "--task", "flaky", "--app", "jobs:app").code == 3
    assert len(cli.ok("run", "ls", "--json").json) == 2


@pytest.mark.parametrize(
    ("what", "printed"),
    [("text", "two\nlines \x1b[2J\n"), ("count", '{"copied": 3}\n'), ("nothing", "")],
)
def test_the_result_of_a_task_is_data_after_its_output(cli: CommandLine, what: str, printed: str) -> None:
    Path("shop.py").write_text(RETURNING)
    answer = cli.ok("exec", "--app", "shop:app", "--task", "answer", "--arg", f"what={what}")
    assert answer.out == f"thinking\n{printed}"
    assert answer.err == "run 1 begins\nrun 1 succeeded\n"


def test_what_a_task_logs_is_its_output_and_no_warning_of_the_command(cli: CommandLine) -> None:
    (cli.folder / "talking.py").write_text(TALKING)
    words = [*PROGRAM, "exec", "--task", "talk", "--app", "talking:app"]
    said = subprocess.run(words, cwd=cli.folder, capture_output=True, text=True, check=True)
    assert "'ostinato run ls' has it" in said.stdout
    assert "has it" not in said.stderr


def test_an_agent_answers_live_and_its_report_is_shown(cli: CommandLine) -> None:
    (cli.folder / "agent.py").write_text(AGENT)
    (cli.folder / "ostinato.toml").write_text(
        f"[agents.mine]\ncommand = {json.dumps([sys.executable, str(cli.folder / 'agent.py')])}\n"
    )
    answer = cli.ok("exec", "--agent", "the weather", "--cli", "mine")
    assert answer.out == "thinking about the weather\nthe answer\n"
    shown = cli.ok("run", "show", "1").out
    assert "work: agent the weather\n" in shown
    assert "text: thinking about the weather\n           the answer\n" in shown
    assert "report: # What I did\n           \n           Nothing at all.\n" in shown
    assert list((cli.folder / ".ostinato").glob("*report*")) == []
    unknown = cli("exec", "--agent", "hi", "--cli", "nobody")
    assert (unknown.code, "nobody" in unknown.err) == (1, True)


def test_a_request_prints_what_is_answered(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving() as server:
        good = server.on("/good", answered(body=b"hello\n", Content_Type="text/plain"))
        refused = cli("exec", "--http", "GET", good)
        assert (refused.code, "http_allow" in refused.err) == (1, True)
        monkeypatch.setenv("OSTINATO_HTTP_ALLOW", "private")
        assert cli.ok("exec", "--http", "GET", good).out == "hello\n"
        failed = cli("exec", "--http", "GET", server.url("/bad"))
        assert (failed.code, "HTTP 404" in failed.err) == (1, True)
        assert cli.ok("exec", "--http", "GET", server.url("/bad"), "--expect", "404").code == 0
    assert " GET http://127" in cli.ok("run", "ls").out


def test_a_node_leaves_nothing_behind_and_does_nothing_else(cli: CommandLine) -> None:
    cli.ok("schedule", "add", "waiting", "every 5m", "--shell", "touch ran")
    cli.ok("schedule", "trigger", "waiting")
    cli.ok("exec", "--shell", "sleep 0.3")
    assert cli.ok("node", "ls", "--json").json == []
    assert not (cli.folder / "ran").exists()
    assert [run["state"] for run in cli.ok("run", "ls", "--json").json] == ["succeeded", "queued"]


def test_a_command_gets_no_input(cli: CommandLine) -> None:
    assert cli.ok("exec", "--shell", "cat; echo $?").out == "0\n"


def test_the_installed_program_exits_as_the_command_does(cli: CommandLine) -> None:
    done = subprocess.run(
        [str(Path(sys.executable).parent / "ostinato"), "exec", "--shell", "exit 4"],
        cwd=cli.folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (4, "")


def test_the_same_commands_work_on_postgresql(
    cli: CommandLine, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OSTINATO_DB", postgres_url)
    cli.ok("project", "add", "here", ".", "--env", "A=1")
    answer = cli("exec", "--shell", "echo $A; exit 3", "--project", "here")
    assert (answer.code, answer.out) == (3, "1\n")
    run = cli.ok("run", "ls", "--project", "here", "--json").json[0]
    assert (run["state"], run["result"]) == ("failed", {"exit_code": 3})
    assert cli.ok("run", "logs", str(run["id"])).out == "1\n"
    with cli.start("exec", "--shell", "echo begun; sleep 60") as running:
        eventually(lambda: "begun" in running.out, "the command runs")
        running.signal(signal.SIGINT)
        assert running.wait() == 130
    cli.ok("project", "rm", "here")


def test_only_the_budget_of_one_run_can_be_given(cli: CommandLine) -> None:
    assert cli.ok("exec", "--shell", "true", "--budget", "per_run_usd=1").code == 0
    answer = cli("exec", "--shell", "true", "--budget", "per_day_usd=1")
    assert answer.code == 2
    assert "a run without a schedule has no daily budget; give per_run_usd" in answer.err
