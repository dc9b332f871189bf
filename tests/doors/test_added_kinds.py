"""Kinds of work that packages add, at every door: real processes with a package on their path."""

from __future__ import annotations

import json
import os
import re
import shlex
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, closing, nullcontext
from pathlib import Path
from typing import Any

import httpx
import pytest

from ostinato.api.permissions import check_permissions
from ostinato.errors import NotAllowed
from ostinato.models.access import Login, Role
from tests.doors.command_line import PROGRAM, Answer, CommandLine, eventually, page_address
from tests.packages import ECHO, GUIDE, guide_package, installed, leave


@pytest.fixture
def ostinato(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """`ostinato …` in a process that has the package of the guide, and another one."""
    folder = leave(guide_package(tmp_path / "packages"), "ostinato_echo", ECHO)
    monkeypatch.setenv("PYTHONPATH", str(folder))
    monkeypatch.setenv("COLUMNS", "120")

    def call(*argv: str) -> Answer:
        done = subprocess.run(
            [*PROGRAM, *argv], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False, env=os.environ
        )
        return Answer(done.returncode, done.stdout, done.stderr)

    return call


def test_the_package_of_the_guide_runs_as_the_guide_says(
    ostinato: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "tr0ub4dor")
    with closing(sqlite3.connect(tmp_path / "shop.db")) as shop:
        shop.executescript("create table orders (id); insert into orders values (1), (2); create table sessions (old)")
    lines = re.findall(r"^\$ ostinato (.*)$", GUIDE.read_text(encoding="utf-8"), re.MULTILINE)
    add, execute = (shlex.split(line) for line in lines)
    added = ostinato(*add, "--json")
    assert added.code == 0, added
    assert added.json["work"] == {
        "kind": "sql",
        "statement": "delete from sessions where old",
        "database": "shop.db",
        "most": 100,
        "token": None,
        "line": "delete from sessions where old",
    }
    assert added.json["policy"]["timeout"] == "1m"
    done = ostinato(*execute)
    assert (done.code, done.out) == (0, "2\n"), done
    told = ostinato("exec", "--sql", "select token()", "--sql-token", "env:SHOP_TOKEN")
    assert (told.code, told.out) == (0, "***\n"), "a secret is hidden in the output"
    failed = ostinato("exec", "--sql", "select nowhere", "--json")
    assert failed.code == 1
    assert "no such column: nowhere" in json.loads(failed.out.splitlines()[-1])["reason"]


def test_help_has_the_flags_of_every_kind(ostinato: Any) -> None:
    for command in (("schedule", "add"), ("schedule", "edit"), ("exec",)):
        text = " ".join(ostinato(*command, "--help").out.split())
        assert "--sql STR The statement to run." in text
        assert "--sql-most STR How many rows of the answer are kept. [default: 100]" in text
        assert "--shell STR The command to run" in text
        assert "[choices: say, raise, abort, wait, hang]" in text
    assert "shell 5m, agent 30m, http 1m, echo 7m, sql 1m, task none" in " ".join(
        ostinato("schedule", "add", "--help").out.split()
    )


def test_flags_give_each_type_of_field(ostinato: Any) -> None:
    given = (
        "--echo",
        "hi",
        "--echo-how",
        "say",
        "--echo-times",
        "2",
        "--echo-loud",
        "--echo-to",
        "a",
        "--echo-to",
        "b",
    )
    added = ostinato("schedule", "add", "x", "every 1h", *given, "--echo-headers", "A=env:HOME", "--json")
    assert added.code == 0, added
    work = added.json["work"]
    assert work | {"line": ""} == {
        "kind": "echo",
        "text": "hi",
        "how": "say",
        "times": 2,
        "loud": True,
        "to": ["a", "b"],
        "token": None,
        "headers": {"A": "env:HOME"},
        "line": "",
    }
    edited = ostinato("schedule", "edit", "x", "--echo-times", "3", "--no-echo-loud", "--echo-headers", "B=2", "--json")
    assert edited.code == 0, edited
    changed = {"times": 3, "loud": False, "headers": {"A": "env:HOME", "B": "2"}}
    assert edited.json["work"] == work | changed
    shown = ostinato("schedule", "show", "x").out
    assert "echo hi" in shown
    assert "headers A=env:HOME B=2" in shown
    assert "--sql-most goes with --sql, not with --echo" in ostinato("schedule", "edit", "x", "--sql-most", "3").err
    both = ostinato("schedule", "add", "x", "every 1h", "--echo", "hi", "--sql", "select 1")
    assert (both.code, "not --echo and --sql" in both.err) == (2, True)
    wrong = ostinato("schedule", "add", "x", "every 1h", "--echo", "hi", "--echo-times", "many")
    assert (wrong.code, "give a whole number" in wrong.err) == (2, True)
    pair = ostinato("exec", "--echo", "hi", "--echo-headers", "A")
    assert pair.err == "error: --echo-headers cannot be 'A'; write --echo-headers NAME=VALUE\n"
    checked = ostinato("exec", "--sql", " ")
    assert (checked.code, "a statement must say something; such as select 1" in checked.err) == (2, True)


def test_what_a_kind_must_be_given_is_told_by_its_flag(ostinato: Any, tmp_path: Path) -> None:
    source = ECHO.replace('Literal["say", "raise", "abort", "wait", "hang"]', "str").replace(' = "say"', "", 1)
    leave(tmp_path / "packages", "ostinato_echo", source)
    missing = ostinato("exec", "--echo", "hi")
    assert (missing.code, missing.err) == (2, "error: --echo needs --echo-how; What else it does.\n")
    assert ostinato("exec", "--echo", "hi", "--echo-how", "say").code == 0


def test_doctor_tells_of_packages(ostinato: Any, tmp_path: Path) -> None:
    leave(tmp_path / "packages", "ostinato_bad", "import no_such_library")
    leave(tmp_path / "packages", "ostinato_too", "", "sql = ostinato_too:kind")
    assert ostinato("db", "migrate").code == 0
    findings = [one for one in ostinato("doctor", "--json").json if one["check"] == "kinds"]
    assert findings[0]["fix"] == "fix or uninstall it; its entry point is 'bad' of ostinato.executors"
    found = {one["text"]: one["status"] for one in findings}
    why = "bad work cannot be loaded: ostinato_bad:kind: ModuleNotFoundError: No module named 'no_such_library'"
    other = "sql work cannot be loaded: ostinato_too:kind: another package adds 'sql'; uninstall one of the two"
    assert found == {why: "warn", other: "warn", "packages add echo, sql": "ok"}


def test_a_package_that_no_flag_can_be_made_of_takes_no_command_away(ostinato: Any, tmp_path: Path) -> None:
    leave(tmp_path / "packages", "ostinato_echo", ECHO.replace('"7m")', '"7m", main=("nope",))'))
    done = ostinato("exec", "--shell", "echo hi")
    assert (done.code, done.out) == (0, "hi\n"), done
    assert "echo" in done.err, "the log names it"
    assert ostinato("schedule", "ls").code == 0


def test_flags_take_away_what_may_be_none_and_give_what_is_behind_it(ostinato: Any, tmp_path: Path) -> None:
    source = ECHO.replace("Annotated[list[str], ", "Annotated[list[str] | None, ")
    source = source.replace("Annotated[int, ", "Annotated[dict[str, int] | None, ").replace(" = 1\n", " = None\n")
    leave(tmp_path / "packages", "ostinato_echo", source)
    given = ("--echo-to", "A", "--echo-to", "2", "--echo-times", '{"a": 1}')
    added = ostinato("schedule", "add", "x", "every 1h", "--echo", "hi", *given, "--json")
    assert added.code == 0, added
    assert (added.json["work"]["to"], added.json["work"]["times"]) == (["A", "2"], {"a": 1})
    edited = ostinato("schedule", "edit", "x", "--echo-to", "none", "--echo-times", "none", "--json")
    assert (edited.json["work"]["to"], edited.json["work"]["times"]) == (None, None)
    assert "to none" in ostinato("schedule", "show", "x").out


def test_where_the_package_is_missing_its_work_is_shown_and_kept(ostinato: Any, cli: CommandLine) -> None:
    assert ostinato("schedule", "add", "x", "every 1h", "--echo", "hi").code == 0
    shown = cli.ok("schedule", "show", "x", "--json").json
    assert (shown["work"]["kind"], shown["state"]) == ("unreadable", "on")
    assert "unknown kind 'echo'" in shown["work"]["reason"]
    assert "cannot be read" in cli("schedule", "edit", "x", "--note", "mine").err
    assert ostinato("schedule", "show", "x", "--json").json["work"]["text"] == "hi"
    (fix,) = [one["fix"] for one in ostinato("doctor", "--json").json if one["check"] == "tasks"]
    assert "with the packages of kind:NAME installed" in fix


@pytest.fixture
def server(ostinato: Any, cli: CommandLine) -> Iterator[dict[str, httpx.Client]]:
    """A server with an engine, and a client for each role."""
    secrets = {role: ostinato("token", "add", role, "--role", role, "--json").json for role in ROLES}
    with ExitStack() as stack:
        up = stack.enter_context(cli.start("up"))
        address = page_address(up)
        yield {
            role: stack.enter_context(
                httpx.Client(base_url=address, headers={"Authorization": f"Bearer {made['token']}"}, timeout=60)
            )
            for role, made in secrets.items()
        }


ROLES = ("admin", "operator", "viewer")


def test_rest_takes_shows_and_runs_it(server: dict[str, httpx.Client]) -> None:
    admin, operator, viewer = (server[role] for role in ROLES)
    body = {"work": {"kind": "echo", "text": "hi pa55word", "token": "pa55word", "headers": {"A": "x1", "B": "env:B"}}}
    refused = operator.post("/api/runs", json=body)
    assert refused.status_code == 403, refused.text
    assert "echo work" in refused.json()["detail"]
    made = admin.post("/api/schedules", json={**body, "name": "x", "timing": "every 1h"})
    assert made.status_code == 201, made.text
    assert made.json()["work"]["line"] == "hi pa55word"
    seen = operator.get("/api/schedules/x").json()["work"]
    assert (seen["text"], seen["token"]) == ("hi pa55word", "***"), "a text that holds its secret is its author's"
    assert (seen["headers"], seen["line"]) == ({"A": "***", "B": "env:B"}, "hi ***")
    hidden = viewer.get("/api/schedules/x").json()["work"]
    assert {hidden[name] for name in ("text", "line", "times", "to", "token")} == {"***"}
    given_back = admin.post("/api/runs", json={"work": {"kind": "echo", "text": "hi", "token": "***"}})
    assert given_back.status_code == 422
    assert given_back.json()["errors"][0]["field"] == "work.token"
    assert "pa55word" not in json.dumps(admin.get("/api/audit").json()).replace("hi pa55word", "")
    replaced = operator.patch("/api/schedules/x", json={"note": "mine"})
    assert replaced.status_code == 200
    assert operator.patch("/api/schedules/x", json={"project": None}).status_code == 403

    wrong = admin.post("/api/runs", json={"work": {"kind": "echo", "text": 5, "how": "sing", "more": 1}})
    assert {error["field"] for error in wrong.json()["errors"]} == {"work.text", "work.how", "work.more"}

    run = admin.post("/api/runs", json={"work": {"kind": "echo", "text": "hello", "times": 2}}).json()
    eventually(lambda: admin.get(f"/api/runs/{run['id']}").json()["state"] == "succeeded", "the run")
    assert admin.get(f"/api/runs/{run['id']}").json()["result"] == {"said": "hello", "to": [], "attempt": 1}


def test_the_description_of_the_api_covers_what_is_installed(server: dict[str, httpx.Client]) -> None:
    kinds = {kind["name"]: kind for kind in server["viewer"].get("/api/kinds").json()["items"]}
    assert list(kinds) == ["function", "shell", "agent", "http", "check_in", "echo", "sql"]
    echo = kinds["echo"]
    assert (echo["label"], echo["added"], echo["needs_admin"], echo["timeout"]) == ("Echo", True, True, "7m")
    assert {field["name"]: field["form"] for field in echo["fields"]} == {
        "text": "text",
        "how": "choice",
        "times": "number",
        "loud": "switch",
        "to": "texts",
        "token": "text",
        "headers": "pairs",
    }
    assert kinds["sql"]["fields"][0] | {"help": ""} == {
        "name": "statement",
        "label": "Statement",
        "help": "",
        "form": "text",
        "required": True,
        "nullable": False,
        "default": None,
        "secret": False,
        "choices": [],
        "has_numbers": False,
    }
    document = server["admin"].get("/api/openapi.json").json()
    schemas = document["components"]["schemas"]
    assert schemas["NewSqlWork"]["required"] == ["kind", "statement"]
    assert schemas["NewSchedule"]["properties"]["work"]["discriminator"]["mapping"]["sql"].endswith("/NewSqlWork")
    assert schemas["Run"]["properties"]["work"]["discriminator"]["mapping"]["sql"].endswith("/SqlWork")
    assert set(schemas["SqlWork"]["properties"]) == {"kind", "statement", "database", "most", "token", "line"}

    work = {"kind": "echo", "text": "hi", "token": "pa55word", "to": ["a"], "headers": {"A": "x1"}}
    server["admin"].post("/api/schedules", json={"name": "x", "timing": "every 1h", "work": work})
    for role in ROLES:
        told = server[role].get("/api/schedules/x").json()["work"]
        wrong = {
            name: value for name, value in told.items() if not fits(value, schemas["EchoWork"]["properties"][name])
        }
        assert not wrong, role


def fits(value: Any, schema: dict[str, Any]) -> bool:
    """Whether a value is what a small schema says."""
    types = {"string": str, "integer": int, "boolean": bool, "array": list, "object": dict, "null": type(None)}
    if "anyOf" in schema:
        return any(fits(value, part) for part in schema["anyOf"])
    words = [schema["const"]] if "const" in schema else schema.get("enum", [value])
    return value in words and isinstance(value, types[schema["type"]])


@pytest.mark.parametrize(("token", "allowed"), [(None, True), ("pa55word", True), ("env:TOKEN", False)])
def test_a_kind_that_is_open_to_operators_is_not_with_a_secret_of_the_machine(
    tmp_path: Path, token: str | None, allowed: bool
) -> None:
    source = ECHO.replace('"7m")', '"7m", needs_admin=False)')
    with installed(leave(tmp_path / "packages", "ostinato_echo", source), "ostinato_echo") as module:
        package: Any = module
        work = package.Echo("hi", token=token)
        with (
            nullcontext() if allowed else pytest.raises(NotAllowed, match="a token that reads a secret of the machine")
        ):
            check_permissions(Login("ada", Role.OPERATOR, None, None, None), work, None)
