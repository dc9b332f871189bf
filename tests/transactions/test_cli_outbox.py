"""`ostinato outbox`: make the table, and see what is in it."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from ostinato.cli.main import run


def test_an_outbox_is_created_and_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    url = f"sqlite:///{tmp_path}/shop.db"
    for _ in range(2):
        assert run(["outbox", "create", url]) == 0
    assert run(["outbox", "ls", url]) == 0
    assert "nothing waits" in "".join(capsys.readouterr())
    columns = "id, created_at, try_at, tries, task, body, error"
    engine = create_engine(url)
    with engine.begin() as connection:
        for row in ("'w', 1, 0, 0, 'greet', '{}', NULL", "'f', 2, NULL, 6, 'greet', '{}', 'its body is not readable'"):
            connection.execute(text(f"INSERT INTO ostinato_outbox ({columns}) VALUES ({row})"))
    engine.dispose()
    assert run(["outbox", "ls", url]) == 0
    shown = capsys.readouterr().out
    assert "waiting" in shown
    assert "failed" in shown
    assert run(["outbox", "ls", url, "--json"]) == 0
    assert '"error":"its body is not readable"' in capsys.readouterr().out.replace(": ", ":")
    assert list(tmp_path.glob("ostinato*")) == [], "no ledger is made for it"


def test_without_an_outbox_it_says_how_to_name_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["outbox", "ls"]) == 2
    assert "give its URL" in capsys.readouterr().err
    assert run(["outbox", "ls", "nonsense://x"]) == 2
