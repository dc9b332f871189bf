"""A text and the program that runs it, as real processes: bash or sh, one that is named, one that is not there."""

from __future__ import annotations

import os
import pwd
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ostinato import Gate, Ostinato, RunState, Shell
from ostinato.execution.executors import interpreter, private_places
from ostinato.models.interpreters import LONGEST_ARGUMENT
from ostinato.models.states import Cause
from tests.engine.test_shell import ended, output_of

LONG = "#" * LONGEST_ARGUMENT + "\necho it is long"


@pytest.fixture
def without_bash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """On a machine that has no bash, as far as one that looks for it can tell."""
    monkeypatch.setattr(interpreter, "_USUAL", (str(tmp_path),))
    monkeypatch.setenv("PATH", str(tmp_path))
    interpreter.default_shell.cache_clear()
    yield
    interpreter.default_shell.cache_clear()


@pytest.fixture
def shouting(tmp_path: Path) -> dict[str, str]:
    """An environment with an interpreter that is not known: it says the mode and the text of its file."""
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "shout"
    program.write_text('#!/bin/sh\necho "$# $1"; stat -c %a-%U "$1"; tr a-z A-Z < "$1"\n')
    program.chmod(0o755)
    return {"PATH": f"{tmp_path}/bin:/usr/bin:/bin"}


def test_a_text_runs_in_bash_where_there_is_one(memory_app: Ostinato) -> None:
    printed = output_of(
        memory_app, "[[ abc == a* ]] && echo ${BASH_VERSION:+bash}; set -o pipefail; false | true || echo 1"
    )
    assert printed == "bash\n1\n"


def test_nothing_is_switched_on_that_the_text_does_not_ask_for(memory_app: Ostinato) -> None:
    assert output_of(memory_app, "false; false | true; echo $UNSET_ANYWHERE went on") == "went on\n"


@pytest.mark.usefixtures("without_bash")
def test_a_text_runs_in_sh_where_there_is_no_bash(memory_app: Ostinato) -> None:
    assert output_of(memory_app, 'echo "$0 ${BASH_VERSION:-no bash}"') == "/bin/sh no bash\n"


@pytest.mark.parametrize(
    ("name", "text", "printed"),
    [
        ("sh", 'echo "$0"', "sh\n"),
        ("/bin/sh", 'echo "$0"', "/bin/sh\n"),
        ("bash", "echo $((1 + 1)) {a,b}", "2 a b\n"),
        ("sh", "-x 2> /dev/null || echo is no option", "is no option\n"),
        ("bash", "--version 2> /dev/null || echo neither", "neither\n"),
        ("python3", "-1; print('a number')", "a number\n"),
        ("perl", '-1; print "a number\\n"', "a number\n"),
        ("python3", "import os, sys\nprint(sys.argv, os.environ['WHO'])", "['-c'] me\n"),
        ("perl", 'print "$ENV{WHO}\\n"', "me\n"),
    ],
)
def test_a_text_runs_in_the_interpreter_that_it_names(memory_app: Ostinato, name: str, text: str, printed: str) -> None:
    assert output_of(memory_app, text, interpreter=name, env={"WHO": "me"}) == printed


def test_an_interpreter_is_found_in_the_path_of_the_work(memory_app: Ostinato, shouting: dict[str, str]) -> None:
    assert ended(memory_app, "hello", interpreter="shout").cause is Cause.NOT_STARTED
    assert output_of(memory_app, "hello", interpreter="shout", env=shouting).endswith("HELLO")


def test_an_unknown_interpreter_is_given_a_private_file_that_is_gone_afterwards(
    memory_app: Ostinato, shouting: dict[str, str]
) -> None:
    me = pwd.getpwuid(os.geteuid()).pw_name
    called, mode, said = output_of(memory_app, "hello\n$(x) 'y'", interpreter="shout", env=shouting).split("\n", 2)
    count, path = called.split()
    assert (count, mode, said) == ("1", f"700-{me}", "HELLO\n$(X) 'Y'")
    assert not os.path.exists(path)
    assert private_places.PLACES.folder is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs commands as others")
def test_the_file_belongs_to_the_user_of_the_work(
    memory_app: Ostinato, shouting: dict[str, str], tmp_path: Path
) -> None:
    for folder in (tmp_path, *tmp_path.parents):
        if not folder.stat().st_mode & stat.S_IXOTH:
            folder.chmod(folder.stat().st_mode | stat.S_IXOTH)
    printed = output_of(memory_app, "hello", interpreter="shout", env=shouting, user="nobody", folder="/")
    assert printed.split("\n", 1)[1] == "700-nobody\nHELLO"


def test_a_text_that_is_too_long_for_an_argument_is_given_in_a_file(memory_app: Ostinato) -> None:
    assert output_of(memory_app, LONG) == "it is long\n"
    assert output_of(memory_app, LONG, interpreter="sh", memory="2GB") == "it is long\n"


def test_a_file_that_cannot_be_written_is_a_readable_end(memory_app: Ostinato, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> str:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(private_places.PLACES, "take", full)
    run = ended(memory_app, LONG, retry=3)
    assert (run.state, run.cause, run.attempt) == (RunState.FAILED, Cause.NOT_STARTED, 1)
    assert (run.reason or "").startswith("its text for '/bin/bash' cannot be written to a file: ")


@pytest.mark.parametrize("limit", [{}, {"nice": 5}], ids=["plain", "with a limit"])
def test_an_interpreter_that_is_not_there_is_named_with_what_helps(memory_app: Ostinato, limit: dict[str, Any]) -> None:
    run = ended(memory_app, "echo", interpreter="no-such-shell", env={"PATH": "/usr/bin"}, retry=3, **limit)
    assert (run.state, run.cause, run.attempt) == (RunState.FAILED, Cause.NOT_STARTED, 1)
    assert run.reason == (
        "this node has no interpreter 'no-such-shell'; looked in PATH (/usr/bin): "
        "install it there, or give the work another interpreter"
    )
    run = ended(memory_app, "echo", interpreter="/opt/no-such-shell", **limit)
    assert (run.reason or "").startswith("this node has no interpreter '/opt/no-such-shell': install it there")


def test_what_else_keeps_it_from_starting_is_not_told_as_a_missing_interpreter(memory_app: Ostinato) -> None:
    run = ended(memory_app, "echo", interpreter="sh", user="nobody-of-this-name")
    assert "there is no user 'nobody-of-this-name' on this machine" in (run.reason or "")


def test_a_gate_that_is_text_runs_in_bash_too(memory_app: Ostinato) -> None:
    gate = """[[ a == a ]] && echo '{"wake": true, "data": "'$0'"}'"""
    assert output_of(memory_app, "echo $OSTINATO_GATE") == "\n"
    for text in (gate, "#" * LONGEST_ARGUMENT + "\n" + """[[ a == a ]] && echo '{"wake": true, "data": "bash"}'"""):
        run = memory_app.execute(Shell("echo $OSTINATO_GATE"), gate=Gate(text))
        assert run.state is RunState.SUCCEEDED, run.reason
        assert "bash" in memory_app.runs.output(run.id)
