"""`ostinato report`: what goes into the pipe of a run, and that it never hangs."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ostinato.cli import report
from tests.doors.command_line import PROGRAM, CommandLine


@pytest.fixture
def pipe(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The reading end of the pipe of a run."""
    path = cli.folder / "report"
    os.mkfifo(path)
    monkeypatch.setenv("OSTINATO_REPORT", str(path))
    reading = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    yield reading
    os.close(reading)


def _said(pipe: int) -> Any:
    line = os.read(pipe, 65_536)
    assert line.endswith(b"\n")
    return json.loads(line)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ([], {}),
        (["--progress", "3/10"], {"progress": {"done": 3, "total": 10, "text": ""}}),
        (["--progress", "2.5"], {"progress": {"done": 2.5, "total": None, "text": ""}}),
        (["--progress", "30%", "--text", "- \"é\"\n"], {"progress": {"done": 30, "total": 100, "text": "- \"é\"\n"}}),
        (["--count", "copied=5", "--count", "copied=2", "--count", "seen"], {"count": {"copied": 7, "seen": 1}}),
        (["--count", "errors=-1"], {"count": {"errors": -1}}),
        (["--total", "copied=5", "--total", "copied=0.5"], {"totals": {"copied": 0.5}}),
        (["--progress", "1/2", "--count", "a=1", "--total", "b=2"],
         {"progress": {"done": 1, "total": 2, "text": ""}, "count": {"a": 1}, "totals": {"b": 2}}),
    ],
)  # fmt: skip
def test_a_report_is_one_line_of_json(cli: CommandLine, pipe: int, flags: list[str], said: Any) -> None:
    answer = cli.ok("report", *flags)
    assert (answer.out, answer.err) == ("", "")
    assert _said(pipe) == said
    assert cli.ok("report", *flags, "--json").json == said


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--text", "x"], "--text goes with --progress"),
        (["--progress", "half"], "--progress cannot be 'half'; write 3/10, 3 or 30%"),
        (["--progress", "3/"], "--progress cannot be '3/'"),
        (["--progress=-1/3"], "--progress cannot be '-1/3'"),
        (["--progress", "nan"], "--progress cannot be 'nan'"),
        (["--count", "=5"], "--count cannot be '=5'; write --count copied=5"),
        (["--count", "copied=many"], "--count cannot be 'copied=many'"),
        (["--total", "copied"], "--total cannot be 'copied'; write --total copied=5"),
        (["--progress", "1", "--text", "x" * 5000], "is too long; 4096 is the most"),
    ],
)
def test_a_wrong_report_is_not_written(cli: CommandLine, pipe: int, flags: list[str], told: str) -> None:
    answer = cli("report", *flags)
    assert (answer.code, answer.out) == (2, "")
    assert told in answer.err
    with pytest.raises(BlockingIOError):
        os.read(pipe, 1)


def test_outside_of_a_run_it_says_where_it_works(wrong_folder: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OSTINATO_REPORT", raising=False)
    answer = wrong_folder("report", "--progress", "1/2")
    assert (answer.code, answer.out) == (1, "")
    assert "only set inside shell and agent runs" in answer.err
    assert not list(wrong_folder.folder.glob("*.db"))


def test_a_pipe_that_is_gone_or_that_nobody_reads_does_not_hang(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OSTINATO_REPORT", str(cli.folder / "report"))
    assert "nobody listens to reports any more" in cli("report", "--progress", "1").err
    os.mkfifo(cli.folder / "report")
    unread = cli("report", "--progress", "1")
    assert (unread.code, "the run has ended" in unread.err) == (1, True)


def test_a_full_pipe_is_given_up_with_a_message(cli: CommandLine, pipe: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "_push", partial(report._push, patience=0.2))
    with contextlib.suppress(BlockingIOError):
        while os.write(pipe, b"x" * 4096):
            pass
    answer = cli("report", "--progress", "1")
    assert (answer.code, answer.out) == (1, "")
    assert "this one was not written" in answer.err


def test_it_imports_nothing_heavy(tmp_path: Path) -> None:
    (tmp_path / "report").touch()
    program = """
import sys
from ostinato.cli.main import run
code = run(["report", "--progress", "1/2"])
heavy = {"apsw", "msgspec", "asyncio", "ostinato.app", "ostinato.config"} & set(sys.modules)
sys.exit(", ".join(heavy) or code)
"""
    environment = {**os.environ, "OSTINATO_REPORT": str(tmp_path / "report")}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads((tmp_path / "report").read_text())["progress"]["done"] == 1


def test_a_script_reports_from_inside_of_its_run(cli: CommandLine) -> None:
    (cli.folder / "copy.sh").write_text(
        '"$@" report --progress 1/2 --text a.txt --count copied=5\n'
        '"$@" report --progress 2/2 --text b.txt --count copied=2 --total errors=0\n'
    )
    command = json.dumps(["sh", "./copy.sh", *PROGRAM])
    cli.ok("exec", "--shell", command)
    run = cli.ok("run", "show", "1", "--json").json
    assert run["progress"] == {"done": 2, "total": 2, "text": "b.txt"}
    assert run["totals"] == {"copied": 7, "errors": 0}
    shown = cli.ok("run", "show", "1").out
    assert "progress: 2 of 2 b.txt" in shown
    assert "totals: copied 7, errors 0" in shown
