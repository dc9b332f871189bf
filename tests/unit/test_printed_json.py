"""JSON that the command line prints: the same value for a program, and nothing that a terminal would obey."""

from __future__ import annotations

import json

import pytest

from ostinato.cli.console import json_text


@pytest.mark.parametrize(
    "char", ["\x7f", "\x85", "\x9b", "\u061c", "\u200b", "\u2028", "\u202e", "\u2066", "\ufeff", "\U000e0041"]
)
def test_what_a_terminal_would_obey_is_escaped_and_reads_back_as_it_was(char: str) -> None:
    value = {f"a{char}b": [f"{char}31m", {"deep": char}]}
    for indent in (None, 2):
        text = json_text(value, indent)
        assert char not in text
        assert json.loads(text) == value


@pytest.mark.parametrize("text", ["plain", "Grüße", "日本語", "🎵", "tab\tand\nline", "\x1b[31m"])
def test_every_script_stays_readable(text: str) -> None:
    assert json_text([text]) == json.dumps([text], ensure_ascii=False)
