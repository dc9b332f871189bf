"""`[telegram]`: what can be said, from where, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ostinato import Agent
from ostinato.config import Settings, load_settings
from ostinato.errors import InvalidInput
from ostinato.models.access import Role
from ostinato.models.notification import check_channel
from ostinato.models.telegram import NO_TELEGRAM, TelegramSettings, channel_of, read_telegram_settings

TOKEN = "12345:AAbbCCddEEffGGhhIIjjKKllMMnnOOpp"


def test_without_anything_there_is_no_bot(tmp_path: Path) -> None:
    assert load_settings(tmp_path, {}).telegram == NO_TELEGRAM == Settings().telegram


def test_the_file_says_all_of_it(tmp_path: Path) -> None:
    (tmp_path / "ostinato.toml").write_text(
        '[telegram]\ntoken = "file:/run/secrets/bot"\napi = "http://127.0.0.1:8081/"\nagent_role = "operator"\n'
        '[telegram.agent]\ncli = "codex"\nmodel = "large"\n[telegram.chats]\n42 = "admin"\n"-1001" = "viewer"\n'
    )
    assert load_settings(tmp_path, {}).telegram == TelegramSettings(
        token="file:/run/secrets/bot",
        chats={42: Role.ADMIN, -1001: Role.VIEWER},
        api="http://127.0.0.1:8081",
        agent=Agent(cli="codex", model="large"),
        agent_role=Role.OPERATOR,
    )


def test_variables_win_over_the_file_one_by_one(tmp_path: Path) -> None:
    (tmp_path / "ostinato.toml").write_text(
        '[telegram]\ntoken = "env:BOT"\ntask = "reply"\n[telegram.chats]\n42 = "admin"\n'
    )
    environment = {
        "OSTINATO_TELEGRAM_CHATS": "7=operator, -8=viewer",
        "OSTINATO_TELEGRAM_API": "https://bots.example.org",
    }
    settings = load_settings(tmp_path, environment).telegram
    assert settings.chats == {7: Role.OPERATOR, -8: Role.VIEWER}
    assert (settings.token, settings.task, settings.api) == ("env:BOT", "reply", "https://bots.example.org")


@pytest.mark.parametrize(
    ("variable", "kept"), [(TOKEN, "env:OSTINATO_TELEGRAM_TOKEN"), ("file:/run/secrets/bot", "file:/run/secrets/bot")]
)
def test_a_token_in_its_variable_stays_there(tmp_path: Path, variable: str, kept: str) -> None:
    settings = load_settings(tmp_path, {"OSTINATO_TELEGRAM_TOKEN": variable})
    assert settings.telegram.token == kept
    assert TOKEN not in repr(settings)


@pytest.mark.parametrize(
    ("given", "field", "says"),
    [
        ({"token": TOKEN}, "telegram.token", "no reference; write env:NAME or file:PATH"),
        ({"token": 5}, "telegram.token", "no reference"),
        ({"chats": {"42": "owner"}}, "telegram.chats.42", "viewer, operator or admin"),
        ({"chats": {"ada": "admin"}}, "telegram.chats", "a chat is a number"),
        ({"chats": ["42"]}, "telegram.chats", "write"),
        ({"chats": "42"}, "telegram.chats.42", "cannot be ''"),
        ({"api": "ftp://example.org"}, "telegram.api", "cannot be"),
        ({"api": "https://example.org/{token}"}, "telegram.api", "cannot be"),
        ({"agent": "claude", "task": "reply"}, "telegram.task", "both"),
        ({"agent": {"prompt": "hi"}}, "telegram.agent", "cli, model"),
        ({"agent_role": "root"}, "telegram.agent_role", "cannot be"),
        ({"chat": {}}, "telegram", "telegram.chat is unknown; known: token, chats"),
        (5, "telegram", "cannot be 5"),
    ],
)
def test_what_cannot_be_is_refused_with_its_field(given: Any, field: str, says: str) -> None:
    with pytest.raises(InvalidInput, match=says) as caught:
        read_telegram_settings(given)
    assert caught.value.field == field
    assert TOKEN not in str(caught.value)


@pytest.mark.parametrize("chat", [42, -1001234567890])
def test_every_chat_is_a_channel_by_its_number(chat: int) -> None:
    assert check_channel(channel_of(chat)) == f"telegram:{chat}"
