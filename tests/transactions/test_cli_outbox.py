"""`ostinato outbox`: make the table, see what is in it, and deal with what was refused; what the doctor says of it."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.pool import NullPool

from ostinato import InvalidInput, NotFound, Ostinato
from ostinato.cli.doctor_outboxes import examine_outboxes
from ostinato.cli.main import run

_ROWS = (
    "'w', 1, 0, 0, 'greet', '{}', NULL",
    "'r', 2, 99, 1, 'greet', '{}', 'it is too old'",
    f"'f', 3, NULL, 6, 'greet', '{{}}', '{'its body is not readable, ' * 8}at all'",
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)
    return tmp_path


@pytest.fixture
def url(folder: Path) -> str:
    return f"sqlite:///{folder}/shop.db"


def filled(url: str) -> Engine:
    """An outbox with a row that waits, one that is tried again, and one that was given up."""
    engine = create_engine(url, poolclass=NullPool)
    Ostinato("sqlite://:memory:").outbox(engine).create()
    columns = "id, created_at, try_at, tries, task, body, error"
    with engine.begin() as connection:
        for row in _ROWS:
            connection.execute(text(f"INSERT INTO ostinato_outbox ({columns}) VALUES ({row})"))
    return engine


def test_an_outbox_is_created_and_listed(folder: Path, url: str, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        assert run(["outbox", "create", url]) == 0
    assert run(["outbox", "ls", url]) == 0
    assert "nothing waits" in "".join(capsys.readouterr())
    filled(url)
    assert run(["outbox", "ls", url]) == 0
    title, *rows = capsys.readouterr().out.splitlines()
    assert title.split() == ["ID", "TASK", "STATE", "ENQUEUED", "TRIES", "ERROR"]
    assert [row.split()[2] for row in rows] == ["waiting", "refused", "failed"]
    assert "1970-01-01" in rows[0]
    assert rows[2].endswith("at all"), "off a terminal nothing is cut"
    assert run(["outbox", "ls", url, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer[1] == {
        "outbox": url,
        "id": "r",
        "task": "greet",
        "created_at": "1970-01-01T00:00:00.000002Z",
        "state": "refused",
        "tries": 1,
        "try_at": "1970-01-01T00:00:00.000099Z",
        "error": "it is too old",
    }
    assert list(folder.glob("ostinato*")) == [], "no ledger is made for it"


def test_rows_have_aware_times_and_an_outbox_its_name(url: str) -> None:
    outbox = Ostinato("sqlite://:memory:").outbox(filled(url))
    assert repr(outbox) == f"<outbox {url}>"
    waiting, refused, failed = outbox.list()
    assert (waiting.created_at, waiting.try_at) == (datetime(1970, 1, 1, microsecond=1, tzinfo=UTC), None)
    assert refused.try_at == datetime(1970, 1, 1, microsecond=99, tzinfo=UTC)
    assert (failed.try_at, failed.state) == (None, "failed")


def test_what_was_refused_is_tried_again_or_removed(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    outbox = Ostinato("sqlite://:memory:").outbox(filled(url))
    assert run(["outbox", "retry", "f", url]) == 0
    assert "row f is tried again" in capsys.readouterr().err
    assert [(row.state, row.tries, row.error) for row in outbox.list()][2] == ("waiting", 0, None)
    assert run(["outbox", "retry", "all", url, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"retried": 1}
    assert {row.state for row in outbox.list()} == {"waiting"}
    assert run(["outbox", "rm", "w", url]) == 2
    assert "pass --yes" in capsys.readouterr().err
    assert run(["outbox", "rm", "w", url, "--yes"]) == 0
    assert [row.id for row in outbox.list()] == ["r", "f"]
    for verb in ("retry", "rm"):
        assert run(["outbox", verb, "w", url, *(["--yes"] if verb == "rm" else [])]) == 3
        assert f"there is no row 'w' in the outbox {url}" in capsys.readouterr().err.replace("\n", " ")
    with pytest.raises(NotFound):
        outbox.retry("w")


def test_a_file_is_taken_as_it_is_by_db(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["outbox", "create", "shop.db"]) == 0
    assert run(["outbox", "ls", "./shop.db"]) == 0
    assert run(["outbox", "ls", f"{folder}/shop.db"]) == 0
    assert "nothing waits" in capsys.readouterr().err


def test_a_word_is_an_alias_of_django_and_says_what_that_needs(folder: Path) -> None:
    program = "from ostinato.cli.main import run; raise SystemExit(run(['outbox', 'ls', 'shop']))"
    command = [sys.executable, "-c", program]  # where no other test has configured Django
    ended = subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=60, check=False)
    assert ended.returncode == 2
    said = " ".join(ended.stderr.split())
    assert "'shop' is read as a database alias of Django, whose settings are not configured here" in said
    assert "Traceback" not in said
    assert "sqlite:///shop.db" in said


def test_an_outbox_that_is_not_there_says_how_to_make_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["outbox", "ls", "sqlite:///typo.db"]) == 1
    assert "there is no file typo.db; 'ostinato outbox create URL' makes it, or" in " ".join(
        capsys.readouterr().err.split()
    )
    assert not (folder / "typo.db").exists()
    (folder / "empty.db").touch()
    assert run(["outbox", "ls", "empty.db"]) == 1
    said = " ".join(capsys.readouterr().err.split())
    assert "there is no table ostinato_outbox in sqlite:///empty.db; 'ostinato outbox create URL'" in said


def test_without_an_outbox_it_says_how_to_name_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["outbox", "ls"]) == 2
    assert "give its URL" in capsys.readouterr().err
    assert run(["outbox", "ls", "nonsense://x"]) == 2
    assert "it can be in SQLite, PostgreSQL or MySQL" in " ".join(capsys.readouterr().err.split())


def test_a_missing_driver_is_named_without_a_wrong_hint() -> None:
    with pytest.raises(InvalidInput, match=r"its driver is not installed: .*cymysql.*; install it, or name") as raised:
        Ostinato("sqlite://:memory:").outbox("mysql+cymysql://ada:secret@x/y")
    assert "secret" not in str(raised.value)


def test_an_engine_that_drains_makes_no_file_and_says_what_is_missing(folder: Path) -> None:
    app = Ostinato("sqlite:///ledger.db")
    outbox = app.add_outbox("sqlite:///typo.db")
    app.start()
    try:
        while (service := app.health()["services"][f"outbox {outbox.name}"])["well"]:
            pass
        assert "there is no file typo.db" in service["status"]
        assert not (folder / "typo.db").exists()
    finally:
        app.stop(grace=0)


_SHOP = """
from ostinato import Ostinato

app = Ostinato("sqlite:///ledger.db")
app.add_outbox("sqlite:///a.db")
app.add_outbox("sqlite:///b.db")
app.add_outbox("sqlite:///typo.db")
"""


def test_the_doctor_looks_into_the_outboxes_of_an_app(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "outbox_shop.py").write_text(_SHOP)
    filled("sqlite:///a.db")
    Ostinato("sqlite://:memory:").outbox("b.db").create()
    assert run(["db", "migrate", "--app", "outbox_shop:app"]) == 0
    capsys.readouterr()
    assert run(["doctor", "--app", "outbox_shop:app", "--json"]) == 1
    found = [one for one in json.loads(capsys.readouterr().out) if one["check"] == "outboxes"]
    said = [(one["status"], one["text"]) for one in found]
    given_up = "sqlite:///a.db: 1 row was given up; row f of task 'greet': its body is not readable"
    assert any(status == "warn" and text.startswith(given_up) for status, text in said)
    assert ("warn", "sqlite:///a.db: 1 row is refused and tried again; row r of task 'greet': it is too old") in said
    assert ("warn", "sqlite:///a.db: no running node drains it; 3 rows are in it") in said
    assert ("warn", "sqlite:///b.db: no running node drains it") in said
    assert any(status == "fail" and "there is no file typo.db" in text for status, text in said)
    assert any("ostinato outbox retry" in (one["fix"] or "") for one in found)
    assert run(["outbox", "ls", "--app", "outbox_shop:app"]) == 1, "one of them is not there"
    Ostinato("sqlite://:memory:").outbox("typo.db").create()
    capsys.readouterr()
    assert run(["outbox", "ls", "--app", "outbox_shop:app"]) == 0
    title, *rows = capsys.readouterr().out.splitlines()
    assert title.split()[0] == "OUTBOX"
    assert {row.split()[0] for row in rows} == {"sqlite:///a.db"}


def test_the_doctor_believes_what_running_nodes_say_of_outboxes(url: str) -> None:
    app = Ostinato("sqlite://:memory:")
    outbox = app.outbox(url)
    outbox.create()
    app.start()
    (node,) = app.nodes.list()
    app.stop(grace=0)
    services = {
        f"outbox {outbox.name}": {"up": True, "well": True, "status": "is drained"},
        "outbox of another": {"up": True, "well": False, "status": "it is away"},
    }
    ok, away = examine_outboxes([outbox], [replace(node, services=services)])
    assert (ok.status, ok.text) == ("ok", f"{url} is drained, 0 rows in it")
    assert (away.status, away.text) == ("warn", f"of another cannot be drained on {node.id}: it is away")
