"""What is made of the description of a kind of work: what each role sees, requests, flags, pages."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Optional

import pytest

from ostinato.api.redaction import shown, shown_to
from ostinato.api.shapes.work import _request
from ostinato.cli.work import _value
from ostinato.cli.work_flags import _flags
from ostinato.cli.work_view import work_page
from ostinato.errors import InvalidInput
from ostinato.models.access import Login, Role
from ostinato.models.installed_kinds import added_kinds
from ostinato.models.kind_parts import of_each_kind
from ostinato.models.work_kinds import FieldForm, Work, WorkField, WorkKind
from ostinato.models.work_values import OUR_KINDS, Unreadable
from ostinato.service import answers
from ostinato.service.kind_answers import kind_answers
from tests.packages import installed, leave

SECRETS = """
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from ostinato import Shown, Work, WorkField, WorkKind

Secret = Annotated[str, WorkField("", secret=True)]
Secrets = Annotated[dict[str, str], WorkField("", secret=True)]
Seen = Annotated[str, WorkField("", shown=Shown.VIEWERS)]


@dataclass(frozen=True)
class First(Work):
    kind: ClassVar[str] = "first"
    headers: Secrets


@dataclass(frozen=True)
class Lines(Work):
    kind: ClassVar[str] = "lines"
    text: Seen
    token: Secret = ""
    headers: Secrets = field(default_factory=dict)

    @property
    def line(self):
        return f"{self.text} {self.token[::-1]} {self.token} {self.headers}"


@dataclass(frozen=True)
class Strict(Work):
    kind: ClassVar[str] = "strict"
    text: Seen
    token: Secret = ""

    def __post_init__(self):
        if "*" in self.token:
            raise ValueError("a token has no stars")


first, lines, strict = (WorkKind(one, print, needs_admin=False) for one in (First, Lines, Strict))
"""


@pytest.fixture
def secrets(tmp_path: Path) -> Iterator[Any]:
    entries = [f"{name} = ostinato_secrets:{name}" for name in ("first", "lines", "strict")]
    with installed(leave(tmp_path / "packages", "ostinato_secrets", SECRETS, *entries), "ostinato_secrets") as module:
        yield module


def seen_by(role: Role, model: Work) -> Any:
    with shown_to(Login("ada", role, None, None, None)):
        return shown(answers._work(model))


@pytest.mark.parametrize("role", [Role.VIEWER, Role.OPERATOR])
def test_no_line_shows_a_secret_to_others_than_admins(secrets: Any, role: Role) -> None:
    literal = {"Authorization": "it's\nhunter2"}
    told = seen_by(role, secrets.First(literal))
    assert (told.headers, "hunter2" in told.line) == ({"Authorization": "***"}, False)
    assert seen_by(Role.ADMIN, secrets.First(literal)).line == str(literal)
    told = seen_by(role, secrets.Lines("hi abc abcdef", "abcdef", {"A": "abc", "B": "env:B"}))
    assert told.line == "hi *** *** *** *** {'A': '***', 'B': 'env:B'}"
    assert (told.text, told.token) == ("hi abc abcdef", "***")
    assert seen_by(role, secrets.Lines("hi", "env:T")).line == "hi T:vne env:T {}", "a reference is no secret"
    assert seen_by(role, secrets.Strict("hi", "abcdef")).line == "***"
    assert seen_by(role, secrets.Strict("hi")).line == "***"


def test_the_line_of_a_secret_is_not_public(secrets: Any) -> None:
    assert {name: kind.is_public for name, kind in added_kinds().items()} == {
        "first": False,
        "lines": True,
        "strict": True,
    }
    assert seen_by(Role.VIEWER, secrets.First({"A": "env:A"})).line == "***"


@dataclass(frozen=True)
class Copy(Work):
    """Copy files."""

    kind: ClassVar[str] = "copy"
    source: str
    to: list[str] | None = None
    limits: dict[str, Any] | None = None
    labels: Optional[dict[str, str]] = None  # noqa: UP045  # as many write it
    codes: Optional[list[int | str]] = None  # noqa: UP045
    speed: float | None = None
    how: Literal["fast", "slow"] | None = None
    rules: dict[str, str] = field(default_factory=lambda: {"a": "b"})
    deep: dict[str, Any] = field(default_factory=lambda: {"a": [1]})
    most: int = 3
    note: str = "x"
    either: list[str] | dict[str, Any] = field(default_factory=list)
    holes: list[str | None] = field(default_factory=list)


copy = WorkKind(Copy, print)
FIELDS = {one.name: one for one in copy.fields}


@pytest.mark.parametrize(
    ("name", "form", "given", "value"),
    [
        ("to", FieldForm.TEXTS, ["a", "2"], ["a", "2"]),
        ("limits", FieldForm.JSON, '{"a": 1}', {"a": 1}),
        ("labels", FieldForm.PAIRS, ["a=1"], {"a": "1"}),
        ("codes", FieldForm.TEXTS, ["204", "Abc", "2XX"], [204, "Abc", "2xx"]),
        ("speed", FieldForm.NUMBER, "1e3", 1000.0),
        ("how", FieldForm.CHOICE, "fast", "fast"),
    ],
)
def test_what_may_be_none_is_written_as_what_may_not(name: str, form: FieldForm, given: Any, value: Any) -> None:
    one = FIELDS[name]
    assert (one.form, one.is_nullable) == (form, True)
    assert _value(one, name, given, None) == value
    assert _value(one, name, ["none"] if isinstance(given, list) else "none", {"old": "1"}) is None
    asked = _request(copy).model_validate({"kind": "copy", "source": "x", name: value})
    assert asked.model_dump()[name] == value
    assert _request(copy).model_validate({"kind": "copy", "source": "x", name: None}).model_dump()[name] is None


def test_what_is_no_list_of_texts_is_json() -> None:
    assert (FIELDS["holes"].form, FIELDS["either"].form) == (FieldForm.JSON, FieldForm.JSON)
    assert _value(FIELDS["either"], "either", '{"a": 1}', None) == {"a": 1}
    with pytest.raises(InvalidInput, match="--limits cannot be"):
        _value(FIELDS["limits"], "limits", "[1]", None)


def test_a_request_has_the_defaults_of_the_class_and_shares_none() -> None:
    first, second = (_request(copy).model_validate({"kind": "copy", "source": "x"}).model_dump() for _ in range(2))
    assert Copy(**{name: value for name, value in first.items() if name != "kind"}) == Copy("x")
    first["deep"]["a"].append(2)
    assert (second["deep"], Copy("x").deep) == ({"a": [1]}, {"a": [1]})


def test_a_page_tells_what_is_empty_and_need_not_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ostinato.models.installed_kinds.kind_of", lambda _: copy)
    told = work_page(Copy("x", rules={}, most=0, note="", deep={}))
    assert told.splitlines() == ["copy x", "rules {}", "deep {}", "most 0", 'note ""']
    assert work_page(Copy("x")).splitlines()[1:] == ["rules a=b", 'deep {"a": [1]}', "most 3", "note x"]


NO_TEXT: Any = 5


@pytest.mark.parametrize(
    "about", [WorkField("", flag="My Flag"), WorkField("", flag="lambda"), WorkField(NO_TEXT, written=NO_TEXT)]
)
def test_a_kind_that_nothing_can_be_made_of_takes_nothing_from_the_others(
    about: WorkField, caplog: pytest.LogCaptureFixture
) -> None:
    @dataclass(frozen=True)
    class Odd(Work):
        kind: ClassVar[str] = "odd"
        text: str
        more: int = 1

    Odd.__annotations__["more"] = Annotated[int, about]
    kinds = {kind.name: kind for kind in (*OUR_KINDS, WorkKind(Odd, print), copy)}
    with caplog.at_level(logging.ERROR, "ostinato"):
        assert list(of_each_kind(_flags, "flags", kinds)) == ["function", "shell", "agent", "http", "check_in", "copy"]
    (record,) = caplog.records
    assert record.getMessage().startswith("odd work, which a package adds, has no flags here: TypeError: ")
    with pytest.raises(ZeroDivisionError):  # a mistake of ours is no package's
        of_each_kind(lambda _: 1 / 0, "flags", {"shell": kinds["shell"]})


def test_work_that_no_answer_can_be_made_of_is_told_as_unreadable(
    secrets: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def made(kind: WorkKind) -> Any:
        raise RuntimeError(kind.name)

    monkeypatch.setattr(answers, "_added_answer", made)
    told = seen_by(Role.ADMIN, secrets.Strict("hi"))
    why = "strict work cannot be shown here: the log says what is wrong with its package"
    assert told == answers.UnreadableWork.of(Unreadable("", why))


def test_a_default_that_is_not_json_hides_no_other_form(tmp_path: Path) -> None:
    source = SECRETS.replace('token: Secret = ""\n\n    def', "token: Secret = print\n\n    def")
    entries = [f"{name} = ostinato_secrets:{name}" for name in ("first", "strict")]
    with installed(leave(tmp_path / "packages", "ostinato_secrets", source, *entries)):
        names = [kind.name for kind in kind_answers().items]
    assert names == ["function", "shell", "agent", "http", "check_in", "first"]
