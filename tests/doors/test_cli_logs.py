"""`ostinato run logs`: from any process, live, no line twice, and harmless on a terminal."""

from __future__ import annotations

import json

import pytest

from ostinato.cli.output import harmless
from ostinato.models.output import OutputPart, lines_to_tell, output_lines
from tests.doors.command_line import CommandLine, eventually, on_a_terminal

NASTY = r"printf '\033[31mred\033[0m plain\n\033[2Jgone \033]0;title\007here\n10%%\r20%%\r100%%\nbell\007\n'"


def test_logs_follow_a_run_of_another_process_to_its_end(cli: CommandLine) -> None:
    command = (
        "for i in 1 2 3 4 5 6; do echo line $i; sleep 0.1; done; printf end; while [ ! -e go ]; do sleep 0.05; done"
    )
    with cli.start("exec", "--shell", command) as running:
        eventually(lambda: "line 1" in running.out, "the command runs")
        with cli.start("run", "logs", "1", "-f", name="follower") as follower:
            eventually(lambda: "line 6" in follower.out, "the lines are followed")
            assert "end" not in follower.out
            (cli.folder / "go").touch()
            assert follower.wait() == 0
        assert running.wait() == 0
    expected = [*(f"line {number}" for number in range(1, 7)), "end"]
    assert follower.out.splitlines() == expected
    assert running.out.splitlines() == expected
    assert "run 1 succeeded" in follower.err


def test_logs_that_were_cut_say_so_once(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OSTINATO_OUTPUT_CAP", "4000")
    cli.ok("exec", "--shell", "i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done")
    lines = cli.ok("run", "logs", "1").out.splitlines()
    assert (lines[0], lines[-1]) == ("line 0", "line 2999")
    assert len([line for line in lines if line.endswith(" bytes cut …")]) == 1
    told = [json.loads(line) for line in cli.ok("run", "logs", "1", "--json").out.splitlines()]
    (remark,) = [line for line in told if line["number"] is None]
    assert (remark["at"], remark["id"]) == (None, 1)
    assert told[-1]["number"] == 3000


def test_logs_say_when_each_line_came(cli: CommandLine) -> None:
    cli.ok("exec", "--shell", "echo one")
    stamp, _, text = cli.ok("run", "logs", "1", "-t").out.partition(" ")
    assert (text, stamp[4], stamp[-1]) == ("one\n", "-", "Z")
    (line,) = [json.loads(line) for line in cli.ok("run", "logs", "1", "--json").out.splitlines()]
    assert list(line) == ["id", "number", "at", "line"]
    assert line["at"][:19] == stamp[:19]


def test_logs_are_raw_in_a_pipe_and_harmless_on_a_terminal(cli: CommandLine) -> None:
    raw = "\x1b[31mred\x1b[0m plain\n\x1b[2Jgone \x1b]0;title\x07here\n10%\r20%\r100%\nbell\x07\n"
    assert cli.ok("exec", "--shell", NASTY).out == raw
    assert cli.ok("run", "logs", "1").out == raw
    shown = on_a_terminal(cli.folder, "run", "logs", "1").replace("\r\n", "\n")
    assert shown == "\x1b[31mred\x1b[0m plain\x1b[0m\ngone here\n100%\nbell\n"
    assert on_a_terminal(cli.folder, "run", "logs", "1", NO_COLOR="1").replace("\r\n", "\n") == (
        "red plain\ngone here\n100%\nbell\n"
    )


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("plain\ttext é 名", "plain\ttext é 名"),
        ("\x1b[1;31mbold red\x1b[0m", "\x1b[1;31mbold red\x1b[0m\x1b[0m"),
        ("\x1b[38:5:1mx", "\x1b[38:5:1mx\x1b[0m"),
        ("\x1b[10;10Hmoved\x1b[K", "moved"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bPq#0\x1b\\sixel", "sixel"),
        ("\x1b]0;no end", ""),
        ("\x1bc reset \x1b(0", " reset "),
        ("\x9b31m eight bits", "31m eight bits"),
        ("a\b\b\x7fb\x00", "ab"),
        ("10%\r100%\r", "100%"),
        ("\r", ""),
        ("\x1b", ""),
        ("\x1b[\x1b[31m", "\x1b[31m\x1b[0m"),
        ("\x1b]0;\x1b[31mtitle\x07x", None),
        ("paid to \u202etnuocca\u202c, \u2066once\u2069\u200f", "paid to tnuocca, once"),
    ],
)
def test_a_terminal_gets_nothing_that_it_would_obey_but_colours(line: str, shown: str | None) -> None:
    made = harmless(line)
    assert shown is None or made == shown
    plain = harmless(line, colours=False)
    assert all(char.isprintable() or char == "\t" for char in plain)
    rest = made
    for colour in ("\x1b[31m", "\x1b[0m", "\x1b[1;31m", "\x1b[38:5:1m"):
        rest = rest.replace(colour, "")
    assert "\x1b" not in rest


def _told(parts: list[OutputPart], *, ended: bool, after: int = 0) -> list[str]:
    return [line.text for line in lines_to_tell(output_lines(parts, after), ended=ended)]


STAMP = "2026-01-01T00:00:00.000Z "


def test_a_line_that_may_go_on_is_told_when_it_is_whole_or_the_run_has_ended() -> None:
    parts = [OutputPart(f"{STAMP}one\n"), OutputPart(f"{STAMP}two\n th", is_tail=True)]
    assert _told(parts, ended=False) == ["one", "two"]
    assert _told(parts, ended=True) == ["one", "two", "th"]
    whole = [OutputPart(f"{STAMP}one\n two\n three\n")]
    assert _told(whole, ended=False, after=2) == ["three"]


def test_a_remark_on_a_cut_is_told_with_the_line_behind_it() -> None:
    waiting = [OutputPart(f"{STAMP}one\n"), OutputPart("", cut_lines=3, cut=50, is_tail=True)]
    assert _told(waiting, ended=False, after=1) == []
    begun = [waiting[0], OutputPart(f"{STAMP}five", cut_lines=3, cut=50, is_tail=True)]
    assert _told(begun, ended=False, after=1) == []
    remark, line = _told(begun, ended=True, after=1)
    assert ("50" in remark, line) == (True, "five")
    assert _told([waiting[0], OutputPart(f"{STAMP}five\n", 3, 50)], ended=False, after=5) == []
