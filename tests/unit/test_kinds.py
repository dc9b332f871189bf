"""The kinds of work besides functions: what they take, what they refuse, and the JSON that is stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import msgspec
import pytest

from ostinato import Agent, Function, Gate, Http, Retry, Shell
from ostinato.errors import InvalidInput, NotLoadable
from ostinato.models.policy import check_session, make_policy, policy_json
from ostinato.models.session import with_turn
from ostinato.models.work import Work, default_policy, read_work, work_json, work_text
from ostinato.models.work_checks import parse_size
from ostinato.models.work_kinds import WorkKind
from ostinato.service.answers import Answer

EVERY_FIELD = [
    Shell(
        ["restic", "backup"],
        {"PASSWORD": "env:RESTIC"},
        folder="sub",
        user="backup",
        nice=10,
        memory="512MB",
        cpu="10m",
    ),
    Agent(
        "Summarise",
        context="session:daily",
        cli="codex",
        model="opus",
        system="Be brief",
        permission_mode="plan",
        allowed_tools=["Read", "Bash(git:*)"],
        mcp_config="mcp.json",
        env={"A": "1"},
        folder="sub",
    ),
    Http(
        "post", "https://example.com/hook?x=1", {"Authorization": "Bearer env:T"}, json={"a": [1]}, expect=[201, "3xx"]
    ),
]


@pytest.mark.parametrize("work", [*EVERY_FIELD, Shell("true"), Agent("Hi"), Http("GET", "http://example.com")])
def test_work_survives_its_stored_text(work: Shell | Agent | Http) -> None:
    text = work_text(work)
    assert read_work(text) == work
    assert msgspec.json.decode(text)["kind"] == work.kind


def test_the_stored_text_says_only_what_was_said() -> None:
    assert work_text(Shell("true")) == '{"kind":"shell","command":"true"}'
    assert work_text(Http("GET", "http://x.example")) == '{"kind":"http","method":"GET","url":"http://x.example"}'


def test_scripts_see_every_field() -> None:
    assert work_json(Shell("true")) == {
        "kind": "shell",
        "command": "true",
        "interpreter": None,
        "env": {},
        "folder": None,
        "user": None,
        "nice": None,
        "memory": None,
        "cpu": None,
    }


def test_sizes_and_times_are_stored_as_numbers() -> None:
    shell = Shell("true", memory="512MB", cpu="10m")
    assert (shell.memory, shell.cpu) == (512 * 1024 * 1024, 600)


@pytest.mark.parametrize(
    ("text", "size"),
    [("1", 1), (2048, 2048), ("1.5K", 1536), ("2g", 2 * 1024**3), (" 1MB ", 1024**2), ("3T", 3 * 1024**4)],
)
def test_a_size_is_bytes_or_has_a_unit(text: Any, size: int) -> None:
    assert parse_size(text, "memory") == size


@pytest.mark.parametrize("wrong", ["", "MB", "-1", "1X", "0", True, None, "1e5", "٣"])
def test_what_is_no_size_is_told(wrong: Any) -> None:
    with pytest.raises(InvalidInput, match="such as 512MB"):
        parse_size(wrong, "memory")


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: Shell(""), "command"),
        (lambda: Shell([]), "command"),
        (lambda: Shell([""]), "command"),
        (lambda: Shell(["a", 3]), "command"),  # type: ignore[list-item]
        (lambda: Shell("a\0b"), "command"),
        (lambda: Shell("true", env={"A=B": "1"}), "env"),
        (lambda: Shell("true", env={"A": 1}), "env"),  # type: ignore[dict-item]
        (lambda: Shell("true", env=["A=1"]), "env"),  # type: ignore[arg-type]
        (lambda: Shell("true", nice=20), "nice"),
        (lambda: Shell("true", nice="5"), "nice"),  # type: ignore[arg-type]
        (lambda: Shell("true", memory="lots"), "memory"),
        (lambda: Shell("true", cpu="10ms"), "cpu"),
        (lambda: Shell("true", folder=" "), "folder"),
        (lambda: Agent(" "), "prompt"),
        (lambda: Agent("Hi", context="shared"), "context"),
        (lambda: Agent("Hi", context="session:"), "context"),
        (lambda: Agent("Hi", context="session:" + "x" * 201), "context"),
        (lambda: Agent("Hi", context="session:a\nb"), "context"),
        (lambda: Agent("Hi", model="--dangerously-skip-permissions"), "model"),
        (lambda: Agent("Hi", permission_mode="-x"), "permission_mode"),
        (lambda: Agent("Hi", system=5), "system"),  # type: ignore[arg-type]
        (lambda: Agent("Hi", allowed_tools="Bash"), "allowed_tools"),  # type: ignore[arg-type]
        (lambda: Agent("Hi", allowed_tools=["--resume=x"]), "allowed_tools"),
        (lambda: Http("G E T", "http://example.com"), "method"),
        (lambda: Http("GET", "ftp://example.com"), "url"),
        (lambda: Http("GET", "http://"), "url"),
        (lambda: Http("GET", "http://example.com:99999/"), "url"),
        (lambda: Http("GET", "http://exa mple.com"), "url"),
        (lambda: Http("GET", "http://me:secret@example.com"), "url"),
        (lambda: Http("GET", "http://example.com\r\nX: y"), "url"),
        (lambda: Http("GET", "http://example.com", {"X": "a\r\nb"}), "headers"),
        (lambda: Http("GET", "http://example.com", {"X Y": "a"}), "headers"),
        (lambda: Http("GET", "http://example.com", json=1, body="x"), "body"),
        (lambda: Http("GET", "http://example.com", body=b"x"), "body"),  # type: ignore[arg-type]
        (lambda: Http("GET", "http://example.com", {"X": 5}), "headers"),  # type: ignore[dict-item]
        (lambda: Http("GET", "http://example.com", ["X: 5"]), "headers"),  # type: ignore[arg-type]
        (lambda: Http("GET", "http://example.com", expect=200), "expect"),  # type: ignore[arg-type]
        (lambda: Http("GET", "http://example.com", expect=["ok"]), "expect"),
        (lambda: Http("GET", "http://example.com", expect=[]), "expect"),
    ],
)
def test_work_that_cannot_be_is_told_by_its_field(make: Any, field: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        make()
    assert raised.value.field == field


def test_stored_work_is_checked_as_given_work_is() -> None:
    with pytest.raises(NotLoadable, match="not readable"):
        read_work('{"kind":"agent","prompt":"Hi","model":"--x"}')


def test_a_body_that_is_not_json_is_told() -> None:
    with pytest.raises(InvalidInput, match="this http work is not JSON"):
        work_text(Http("POST", "http://example.com", json=float("nan")))


def test_a_status_is_expected_by_its_number_or_its_class() -> None:
    http = Http("GET", "http://example.com", expect=[204, "3xx"])
    assert [status for status in (200, 204, 302, 404) if http.expects(status)] == [204, 302]
    assert Http("GET", "http://example.com").expects(299)


def test_a_conversation_belongs_to_a_project_or_to_its_name() -> None:
    assert Agent("Hi").conversation("blog") is None
    assert Agent("Hi", context="group").conversation("blog") == "claude/group/blog"
    assert Agent("Hi", context="group").conversation(None) == "claude/group"
    assert Agent("Hi", context="session:x").conversation("blog") == "claude/session:x"


def test_runs_of_one_conversation_go_in_turn() -> None:
    policy = make_policy({})
    assert with_turn(policy, Agent("Hi", context="group"), "blog").session == "agent:claude/group/blog"
    assert with_turn(policy, Agent("Hi", context="session:dm:42"), "blog").session == "dm:42"
    assert with_turn(policy, Agent("Hi", context="session:dm:42", cli="codex"), None).session == "dm:42"
    assert with_turn(policy, Agent("Hi"), "blog") is policy
    assert with_turn(policy, Function("job"), "blog") is policy
    named = make_policy({"session": "mine"})
    assert with_turn(named, Agent("Hi", context="group"), "blog") is named


@pytest.mark.parametrize("name", ["x" * 200, "dm:42", "group/blog", "a b", "isolated", "session:x", " x"])
def test_a_conversation_may_have_the_name_of_every_session(name: str) -> None:
    assert Agent("Hi", context=f"session:{name}").turn(None) == check_session(name)


@pytest.mark.parametrize("name", ["x" * 201, "", " ", "a\nb", "schedule:nightly"])
def test_a_conversation_cannot_have_a_name_that_no_session_has(name: str) -> None:
    with pytest.raises(InvalidInput):
        check_session(name)
    with pytest.raises(InvalidInput) as raised:
        Agent("Hi", context=f"session:{name}")
    assert raised.value.field == "context"


def test_each_kind_has_its_timeout_and_its_breaker_and_agents_their_retry() -> None:
    assert [default_policy(kind) for kind in ("function", "shell", "agent", "http", "unknown")] == [
        {},
        {"timeout": "5m", "break_after": 3},
        {"timeout": "30m", "retry": Retry(covers="start"), "break_after": 3},
        {"timeout": "1m", "break_after": 3},
        {},
    ]


def test_a_line_of_work_is_what_people_call_it() -> None:
    works: list[Work] = [
        Function("job"),
        Shell("a b"),
        Shell(["a", "b c"]),
        Agent("Hi"),
        Http("GET", "http://x.example"),
    ]
    assert [work.line for work in works] == ["job", "a b", "a 'b c'", "Hi", "GET http://x.example"]


def test_no_field_is_called_what_works_and_their_answers_have() -> None:
    taken = {name for name in (*dir(Work), *dir(Answer)) if not name.startswith("_")}
    for name in {"kind", *taken}:
        fields: dict[str, Any] = {"kind": ClassVar[str], name: str}
        value: type[Work] = dataclass(frozen=True)(type("Odd", (Work,), {"kind": "odd", "__annotations__": fields}))
        with pytest.raises(InvalidInput, match=f"field of work cannot be called '{name}'"):
            WorkKind(value, "odd:execute")


def test_a_gate_is_a_command_with_a_timeout() -> None:
    assert make_policy({"gate": "./new-mail.sh"}).gate == Gate("./new-mail.sh", "30s")
    assert make_policy({"gate": ["./new-mail.sh", "inbox"]}).gate == Gate(["./new-mail.sh", "inbox"])
    assert make_policy({"gate": {"command": "x", "timeout": "5s"}}).gate == Gate("x", "5s")
    assert policy_json(make_policy({"gate": ["a", "b"]}))["gate"] == {"command": ["a", "b"], "timeout": "30s"}


@pytest.mark.parametrize("wrong", ["", [], 3, {"timeout": "5s"}, {"command": "x", "timeout": 0}, {"script": "x"}])
def test_a_gate_that_cannot_be_is_told(wrong: Any) -> None:
    with pytest.raises(InvalidInput) as raised:
        make_policy({"gate": wrong})
    assert raised.value.field.startswith("gate")


@pytest.mark.parametrize("memory", ["2TB", "512GB", 10**15])
def test_a_large_memory_limit_is_read_back_as_it_was_stored(memory: int | str) -> None:
    work = Shell("true", memory=memory)
    assert read_work(work_text(work)) == work
