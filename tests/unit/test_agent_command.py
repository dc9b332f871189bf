"""What an agent's command line is called with."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ostinato.agent_clis import CLAUDE, AgentCli
from ostinato.execution.executors.agent.command import (
    BUILT_IN_PROMPT,
    Invocation,
    can_continue,
    invocation,
    knows_budget,
    prompt_text,
    system_text,
)
from ostinato.models.work import Agent

VALUES = {
    "report": "/srv/.ostinato/run-7-report.md",
    "run": "7",
    "schedule": "nightly",
    "due_at": "2026-01-01T00:00:00Z",
    "due_local": "Thursday, 2026-01-01 01:00:00 +01:00",
    "now_local": "Thursday, 2026-01-01 01:00:02 +01:00",
    "zone": "Europe/Berlin",
}


def called(cli: AgentCli, work: Agent | None = None, **given: Any) -> Invocation:
    default: dict[str, Any] = {
        "prompt": "look",
        "system": "",
        "report": "/r.md",
        "new": "new-id",
        "resumed": None,
        "allowance": None,
    }
    return invocation(cli, work or Agent("look"), **{**default, **given})


def test_only_the_flags_that_were_asked_for_are_given() -> None:
    call = called(CLAUDE)
    assert call.command == ["claude", "-p", "--output-format", "stream-json", "--verbose", "--session-id=new-id"]
    assert (call.stdin, call.conversation, call.is_continued) == (b"look", "new-id", False)


def test_every_flag_of_the_contract_is_there_when_asked_for() -> None:
    work = Agent(
        "look",
        model="opus",
        permission_mode="acceptEdits",
        allowed_tools=["Read", "Bash(git log:*)"],
        mcp_config="mcp.json",
    )
    call = called(CLAUDE, work, system="Be brief.", resumed="old-id", allowance=0.5)
    assert call.command[:6] == ["claude", "-p", "--output-format", "stream-json", "--verbose", "--resume=old-id"]
    flags = call.command[6:]
    assert dict(zip(flags[::2], flags[1::2], strict=True)) == {
        "--append-system-prompt": "Be brief.",
        "--permission-mode": "acceptEdits",
        "--allowedTools": "Read,Bash(git log:*)",
        "--max-budget-usd": "0.5",
        "--mcp-config": "mcp.json",
        "--model": "opus",
    }
    assert (call.conversation, call.is_continued) == ("old-id", True)


def test_an_allowance_is_written_as_people_write_money() -> None:
    amounts = {5.0: "5", 0.00001: "0.00001", 1.25: "1.25", 1e-6: "0.000001", 100.0: "100"}
    for amount, text in amounts.items():
        command = called(CLAUDE, allowance=amount).command
        assert command[command.index("--max-budget-usd") + 1] == text


@given(st.text())
def test_the_prompt_of_claude_is_never_an_argument(prompt: str) -> None:
    call = called(CLAUDE, prompt=prompt)
    assert call.command == called(CLAUDE).command
    assert call.stdin.decode() == prompt


@given(st.text())
def test_a_template_is_filled_once_and_a_prompt_full_of_braces_stays_what_it_is(prompt: str) -> None:
    cli = AgentCli(("codex", "exec", "--report={report}", "{prompt}", "{}", "{other}"))
    call = called(cli, prompt=prompt + "{report}{model}{0}")
    assert call.command == ["codex", "exec", "--report=/r.md", prompt + "{report}{model}{0}", "{}", "{other}"]
    assert call.stdin == b""


def test_without_the_prompt_in_its_command_it_goes_to_stdin() -> None:
    call = called(AgentCli(("codex", "exec", "-")))
    assert (call.command, call.stdin) == (["codex", "exec", "-"], b"look")


def test_a_value_that_is_not_there_takes_its_flag_with_it() -> None:
    cli = AgentCli(("codex", "--model", "{model}", "--report={report}", "-", "{model}"))
    assert called(cli, report=None).command == ["codex", "-"]
    assert called(cli, Agent("look", model="o5")).command == ["codex", "--model", "o5", "--report=/r.md", "-", "o5"]


def test_another_cli_is_told_its_budget_where_its_command_has_a_place_for_it() -> None:
    cli = AgentCli(("codex", "--limit", "{budget}"))
    assert called(cli, allowance=0.5).command == ["codex", "--limit", "0.5"]
    assert called(cli).command == ["codex"]
    assert (knows_budget(cli), knows_budget(AgentCli(("codex",))), knows_budget(CLAUDE)) == (True, False, True)


def test_a_system_prompt_goes_in_front_of_the_prompt_where_there_is_no_place_for_it() -> None:
    assert called(AgentCli(("codex",)), system="Be brief.").stdin == b"Be brief.\n\nlook"
    call = called(AgentCli(("codex", "--system", "{system}")), system="Be brief.")
    assert (call.command, call.stdin) == (["codex", "--system", "Be brief."], b"look")
    assert called(AgentCli(("codex", "--system", "{system}"))).command == ["codex"]


def test_another_cli_is_continued_by_its_own_command() -> None:
    cli = AgentCli(("codex", "exec", "-"), resume=("codex", "exec", "resume", "{conversation}", "-"))
    call = called(cli, resumed="thread-1")
    assert call.command == ["codex", "exec", "resume", "thread-1", "-"]
    assert (call.conversation, call.is_continued) == ("thread-1", True)
    assert called(cli).conversation is None  # it will say so itself
    assert can_continue(cli)
    assert can_continue(CLAUDE)
    assert not can_continue(AgentCli(("codex",)))


def test_a_cli_that_continues_the_last_conversation_needs_no_id_of_its_own() -> None:
    cli = AgentCli(("codex", "exec"), resume=("codex", "resume", "--last"))
    assert called(cli).conversation == "new-id"
    assert called(cli, resumed="new-id").command == ["codex", "resume", "--last"]


def test_a_wrapper_that_speaks_claude_gets_the_flags_that_it_does_not_name_itself() -> None:
    cli = replace(CLAUDE, command=("sandbox", "--model={model}", "claude"))
    call = called(cli, Agent("look", model="opus"))
    assert call.command[:3] == ["sandbox", "--model=opus", "claude"]
    assert "--model" not in call.command
    assert "--session-id=new-id" in call.command


def test_claude_with_one_object_at_the_end_needs_no_verbose() -> None:
    assert called(replace(CLAUDE, output="json")).command == [
        "claude",
        "-p",
        "--output-format",
        "json",
        "--session-id=new-id",
    ]


def test_the_built_in_system_prompt_names_the_report_and_the_run() -> None:
    text = system_text(BUILT_IN_PROMPT, VALUES, "Speak French.")
    assert "/srv/.ostinato/run-7-report.md" in text
    assert "Your schedule is nightly, and this run of it was due at Thursday, 2026-01-01 01:00:00 +01:00" in text
    assert "It is Thursday, 2026-01-01 01:00:02 +01:00 now, in the zone Europe/Berlin" in text
    assert text.endswith("\n\nSpeak French.")
    assert "{" not in text


def test_a_template_of_ones_own_is_replaced_as_text_and_only_once() -> None:
    odd = {**VALUES, "schedule": "{run} {x}"}
    assert system_text("{schedule} {unknown} {0}", odd, None) == "{run} {x} {unknown} {0}"
    assert system_text("", VALUES, None) == ""


def test_without_a_report_the_lines_that_name_it_are_left_out() -> None:
    assert (
        system_text("Be brief.\nWrite to {report}.\nRun {run}.", {**VALUES, "report": None}, None)
        == "Be brief.\nRun 7."
    )
    assert "report" not in system_text(BUILT_IN_PROMPT, {**VALUES, "report": None}, None)


def test_what_the_gate_gave_stands_behind_the_prompt() -> None:
    assert prompt_text("look", None) == "look"
    text = prompt_text("look", {"mails": ["é"]})
    assert text.startswith("look\n\nThe gate script")
    assert '```json\n{\n  "mails": [\n    "é"\n  ]\n}\n```' in text
