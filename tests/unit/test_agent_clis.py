"""The command lines that are known from the start, and those of the settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from ostinato.agent_clis import BUILT_IN, CLAUDE, CODEX, AgentCli
from ostinato.config import Settings, load_settings
from ostinato.errors import InvalidInput
from ostinato.execution.executors.agent.command import can_continue, invocation
from ostinato.models.work import Agent


def read(folder: Path, text: str) -> Settings:
    (folder / "ostinato.toml").write_text(text, encoding="utf-8")
    return load_settings(folder, {})


def call(cli: AgentCli, *, model: str | None = None, resumed: str | None = None) -> tuple[str, bytes]:
    called = invocation(
        cli,
        Agent("look", model=model),
        prompt="look",
        system="",
        report=None,
        new="new-id",
        resumed=resumed,
        allowance=None,
    )
    return " ".join(called.command), called.stdin


def test_four_are_known_without_any_setting() -> None:
    assert Settings().agent_clis == BUILT_IN
    assert sorted(BUILT_IN) == ["claude", "codex", "gemini", "opencode"]
    for name, cli in BUILT_IN.items():
        assert cli.command[0] == name
        assert can_continue(cli)
        assert cli.install
        assert cli.output == "stream-json"


@pytest.mark.parametrize(
    ("name", "new", "resumed"),
    [
        (
            "codex",
            "codex exec --json --skip-git-repo-check -",
            "codex exec --json --skip-git-repo-check --model m resume t-1 -",
        ),
        (
            "gemini",
            "gemini --output-format stream-json",
            "gemini --output-format stream-json --model m --resume t-1",
        ),
        (
            "opencode",
            "opencode run --format json",
            "opencode run --format json --model m --session t-1",
        ),
    ],
)
def test_each_is_called_as_it_documents(name: str, new: str, resumed: str) -> None:
    assert call(BUILT_IN[name]) == (new, b"look")
    assert call(BUILT_IN[name], model="m", resumed="t-1") == (resumed, b"look")


def test_a_table_changes_single_fields_of_a_built_in_one(tmp_path: Path) -> None:
    clis = read(
        tmp_path, '[agents.codex]\nresume = "codex resume {conversation}"\n[agents.mine]\ncommand = "m"'
    ).agent_clis
    assert clis["codex"].resume == ("codex", "resume", "{conversation}")
    assert (clis["codex"].command, clis["codex"].format, clis["codex"].login) == (CODEX.command, "codex", CODEX.login)
    assert clis["claude"] == CLAUDE
    assert clis["mine"] == AgentCli(("m",))


def test_a_command_of_ones_own_is_not_continued_by_another(tmp_path: Path) -> None:
    clis = read(tmp_path, '[agents.codex]\ncommand = "sandbox codex exec --json -"').agent_clis
    assert (clis["codex"].command[0], clis["codex"].resume) == ("sandbox", ())
    assert (clis["codex"].output, clis["codex"].format) == ("stream-json", "codex")
    clis = read(tmp_path, '[agents.claude]\ncommand = "sandbox claude"').agent_clis
    assert can_continue(clis["claude"])


def test_any_command_says_where_things_are_in_its_json(tmp_path: Path) -> None:
    text = """
[agents.mine]
command = "mine --prompt {prompt}"
output = "json"
fields = { answer = "choices.0.text", conversation = "meta.session", cost = "usage.cost_usd" }

[agents.other-codex]
command = "other exec -"
output = "stream-json"
format = "codex"
"""
    clis = read(tmp_path, text).agent_clis
    assert clis["mine"].fields == {
        "answer": ("choices", "0", "text"),
        "conversation": ("meta", "session"),
        "cost": ("usage", "cost_usd"),
    }
    assert clis["other-codex"].format == "codex"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("agents = 3", r"agents cannot be 3"),
        ("[agents]\nx = 3", r"agents.x cannot be 3.*its fields are command, fields, format"),
        ("[agents.x]\nflags = 'a'", r"agents.x cannot be .*its fields are command"),
        ("[agents.x]\noutput = 'text'", r"agents.x has no command"),
        ("[agents.x]\ncommand = ''", r"agents.x.command cannot be ''"),
        ("[agents.x]\ncommand = 'x'\noutput = 'xml'", r"it is text, json or stream-json"),
        ("[agents.x]\ncommand = 'x'\nformat = 'mine'", r"it is claude, codex, gemini or opencode"),
        ("[agents.x]\ncommand = 'x'\nspeaks_claude = 1", r"it is true or false"),
        ("[agents.x]\ncommand = 'x'\noutput = 'stream-json'", r"agents.x prints stream-json, but not in which format"),
        ("[agents.x]\ncommand = 'x'\nfields = { answer = 'a' }", r"agents.x has fields, but prints text"),
        (
            "[agents.x]\ncommand = 'x'\noutput = 'json'\nformat = 'codex'\nfields = { answer = 'a' }",
            r"agents.x has fields, but a format as well",
        ),
        (
            "[agents.x]\ncommand = 'x'\noutput = 'json'\nfields = { cost = 'a' }",
            r"agents.x.fields does not say where the answer is",
        ),
        (
            "[agents.x]\ncommand = 'x'\noutput = 'json'\nfields = { answer = 'a', price = 'b' }",
            r"agents.x.fields cannot be .*the names are answer, conversation, cost",
        ),
        (
            "[agents.x]\ncommand = 'x'\noutput = 'json'\nfields = { answer = 'a..b' }",
            r"agents.x.fields.answer cannot be 'a..b'.*choices.0.text",
        ),
        ("[agents.x]\ncommand = 'x'\noutput = 'json'\nfields = { answer = 0 }", r"agents.x.fields.answer cannot be 0"),
        ("[agents.x]\ncommand = 'x'\noutput = 'json'\nfields = 'answer'", r"agents.x.fields cannot be 'answer'"),
    ],
)
def test_a_wrong_table_says_what_is_wrong(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(InvalidInput, match=f"(?s){says}"):
        read(tmp_path, text)
