"""What a call becomes in JSON and back, by the annotations of its function; what would arrive changed is refused."""

import dataclasses
import datetime as dt
import enum
import functools
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, NewType, TypedDict
from zoneinfo import ZoneInfo

import attrs
import msgspec
import pydantic
import pytest

from ostinato.errors import InvalidInput
from ostinato.execution.arguments import TaskSignature
from ostinato.execution.outcome import Outcome, OutcomeKind, returned

DAY = dt.date(2026, 3, 1)


class Login(pydantic.BaseModel):
    user: str
    password: pydantic.SecretStr = pydantic.SecretStr("")
    session: str = pydantic.Field(default="", exclude=True)


class Renamed(pydantic.BaseModel):
    x: int = pydantic.Field(0, serialization_alias="y")


class Shouting(pydantic.BaseModel):
    name: str

    @pydantic.field_validator("name")
    @classmethod
    def shout(cls, name: str) -> str:
        return name + "!"


class Rounded(pydantic.BaseModel):
    amount: float

    @pydantic.field_serializer("amount")
    def rounded(self, amount: float) -> float:
        return round(amount)


class Extra(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")


class Cat(pydantic.BaseModel):
    kind: Literal["cat"] = "cat"
    lives: int = 9


class Dog(pydantic.BaseModel):
    kind: Literal["dog"] = "dog"


class Mail:
    """Its values are text, as those of pydantic's EmailStr are."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        return handler.generate_schema(Annotated[str, pydantic.Field(pattern="@")])


@dataclasses.dataclass
class Counting:
    a: int

    def __post_init__(self) -> None:
        self.a += 1


@dataclasses.dataclass
class Order:
    day: dt.date
    logins: list[Login] = dataclasses.field(default_factory=list)


@attrs.define
class Hidden:
    _secret: int = 0


@attrs.define
class Place:
    path: str


class Parcel(msgspec.Struct):
    weight: int


class Grams(TypedDict):
    flour: int


class Colour(enum.StrEnum):
    RED = "red"


Ounces = NewType("Ounces", Annotated[int, pydantic.Field(ge=1)])
Pet = Annotated[Cat | Dog, pydantic.Field(discriminator="kind")]


def signature(kind: Any, name: str = "x") -> TaskSignature:
    def function(x: Any) -> Any: ...

    function.__annotations__ = {name: kind}
    return TaskSignature("t", function, None)


def arrives(kind: Any, value: Any, from_json: bool = False) -> Any:
    task = signature(kind)
    stored = task.encode([value], {}, from_json)
    stored = msgspec.json.decode(msgspec.json.encode(stored))
    ((arrived,), _) = task.decode(*stored)
    return arrived


@pytest.mark.parametrize(
    ("kind", "value", "words"),
    [
        (pydantic.SecretStr, pydantic.SecretStr("hunter2"), "is a SecretStr, which would arrive changed; a secret is"),
        (Login, Login(user="ada", password=pydantic.SecretStr("x")), "would arrive changed in its field 'password'"),
        (Login, Login(user="ada", session="s1"), "would arrive changed in its field 'session'"),
        (
            Order,
            Order(DAY, [Login(user="ada", session="s1")]),
            "would arrive changed in its field 'logins.session'; its class must make the same of its JSON",
        ),
        (Renamed, Renamed(x=5), "would arrive changed in its field 'x'"),
        (Shouting, Shouting(name="a"), "would arrive changed in its field 'name'"),
        (Rounded, Rounded(amount=1.6), "would arrive changed in its field 'amount'"),
        (Extra, Extra(day=DAY), "has a date, which would arrive as a str"),  # type: ignore[call-arg]
        (Counting, Counting(1), "would arrive changed in its field 'a'"),
        (Hidden, Hidden(4), "would arrive changed in its field '_secret'"),
        (Grams, {"flour": 1, "salt": 2}, "has the key 'salt', which is not known and would not arrive"),
        (list[Grams], [{"flour": 1, "salt": 2}], "has the key 'salt', which is not known and would not arrive"),
        (bytes, "abcd", "is text, which would arrive as the bytes of its base64; give bytes"),
        (list[bytes], ["abcd"], "has text, which would arrive as the bytes of its base64; give bytes"),
        (Decimal, Decimal("NaN"), "is NaN, which is not a number in JSON"),
        (list[Decimal], [Decimal("-Infinity")], "has -Infinity, which is not a number in JSON"),
        (
            dt.datetime,
            dt.datetime(2026, 1, 1, tzinfo=dt.timezone(dt.timedelta(seconds=450))),
            "is a datetime, which would arrive changed",
        ),
    ],
)
def test_what_would_arrive_changed_is_refused(kind: Any, value: Any, words: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        arrives(kind, value)
    assert str(refused.value).startswith(f"argument 'x' of task 't' {words}")
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (Login, Login(user="ada")),
        (Shouting | None, None),
        (Extra, Extra(note="plain")),  # type: ignore[call-arg]
        (Hidden, Hidden()),
        (Grams, {"flour": 1}),
        (Order, Order(DAY, [Login(user="ada")])),
        (list[Cat | Dog], [Dog(), Cat(lives=8)]),
        (dict[str, Cat | Dog], {"rex": Dog()}),
        (Pet, Dog()),
        (list[Pet] | None, [Cat(), Dog()]),
        (Cat | Place, Place("here")),
        (Cat | Place, Cat(lives=1)),
        (list[Cat | Parcel], [Parcel(3), Cat(lives=2)]),
        (pydantic.PositiveInt, 5),
        (pydantic.AwareDatetime, dt.datetime(2026, 1, 1, tzinfo=dt.UTC)),
        (list[pydantic.PastDate] | None, [dt.date(2000, 1, 1)]),
        (Mail, "ada@example.org"),
        (dict[str, Mail], {"ada": "ada@example.org"}),
        (pydantic.HttpUrl, pydantic.HttpUrl("https://example.org/")),
        (pydantic.ByteSize, pydantic.ByteSize(1024)),
        (Ounces, 5),
        (Annotated[bytes, pydantic.Field(max_length=2)], b"\xff"),
        (Annotated[list[Parcel], pydantic.Field(max_length=2)], [Parcel(1)]),
        (Annotated[Path, pydantic.Field()], Path("x")),
        (set[Annotated[dt.date, pydantic.Field(gt=dt.date(2000, 1, 1))]], {DAY}),
    ],
)
def test_what_arrives_the_same_is_taken(kind: Any, value: Any) -> None:
    arrived = arrives(kind, value)
    assert (type(arrived), arrived) == (type(value), value)


@pytest.mark.parametrize(
    ("kind", "value", "words"),
    [
        (pydantic.PositiveInt, -5, "int: Input should be greater than 0"),
        (pydantic.PositiveInt, "5", "int: Input should be a valid integer"),
        (Ounces, 0, "greater than or equal to 1"),
        (Mail, "ada", "Mail: String should match pattern '@'"),
        (pydantic.AwareDatetime, dt.datetime(2026, 1, 1), "AwareDatetime: Input should have timezone info"),
        (Annotated[str, pydantic.Field(max_length=2)], "too long", "str: String should have at most 2 characters"),
        (Annotated[str, pydantic.Field(max_length=2)] | None, "too long", "String should have at most 2 characters"),
        (list[pydantic.PositiveInt], [1, -1], "1: Input should be greater than 0"),
        (dict[str, pydantic.PositiveInt], {"a": -1}, "a: Input should be greater than 0"),
        (Annotated[list[Parcel], pydantic.Field(max_length=1)], [Parcel(1), Parcel(2)], "at most 1 item"),
        (dt.datetime, "tomorrow", "datetime: 'tomorrow' is not a datetime such as 2026-03-01T09:30:00Z"),
        (dt.date, "2026-13-01", "date: '2026-13-01' is not a date such as 2026-03-01"),
        (dt.date, dt.datetime(2026, 1, 1), "date: a datetime is not a date such as 2026-03-01"),
        (dt.timedelta, "an hour", "timedelta: 'an hour' is not a duration such as P1DT2H30M"),
        (Order, {"day": "soon"}, "Order: some text is not a date such as 2026-03-01 - at `$.day`"),
    ],
)
def test_what_does_not_fit_is_refused(kind: Any, value: Any, words: str) -> None:
    with pytest.raises(InvalidInput, match="argument 'x' of task 't' does not fit ") as refused:
        arrives(kind, value)
    assert words in str(refused.value)


def test_an_annotation_that_normalises_what_is_given_may_do_so() -> None:
    lower = Annotated[str, pydantic.StringConstraints(to_lower=True)]
    assert arrives(lower, "ABC") == "abc"
    assert arrives(list[lower], ["ABC"]) == ["abc"]


def test_a_time_of_a_zone_arrives_with_its_offset() -> None:
    """Also one that the clocks there have twice."""
    sent = dt.datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Berlin"))
    assert arrives(dt.datetime, sent) - sent == dt.timedelta(0)
    assert arrives(dt.datetime, sent).utcoffset() == dt.timedelta(hours=1)


def test_text_for_bytes_is_base64_where_there_is_only_json() -> None:
    assert arrives(bytes, "AP8=", from_json=True) == b"\x00\xff"


@pytest.mark.parametrize("value", [1j, range(3), ZoneInfo("Europe/Berlin")])
def test_who_has_annotated_is_not_told_to_annotate(value: Any) -> None:
    with pytest.raises(InvalidInput, match="pass plain JSON, and make it inside the task") as refused:
        arrives(type(value), value)
    assert "annotate x" not in str(refused.value)


def test_a_union_that_nobody_can_convert_leaves_plain_json() -> None:
    class Unknown: ...

    assert arrives(Cat | Unknown, {"lives": 1}) == {"lives": 1}
    with pytest.raises(InvalidInput, match="is a Cat, which is not JSON, and its annotation cannot be used"):
        arrives(Cat | Unknown, Cat())


def test_an_argument_by_position_alone_is_not_given_by_a_keyword_of_its_name() -> None:
    def function(a: dt.date, /, b: int = 1, *, c: int = 2, **more: int) -> None: ...

    task = TaskSignature("t", function, None)
    with pytest.raises(InvalidInput, match="task 't' needs the argument 'a'"):
        task.encode([], {"a": 3})
    assert task.encode([DAY], {"a": 3, "return": 4}) == (["2026-03-01"], {"a": 3, "return": 4})
    with pytest.raises(InvalidInput, match="argument 'args' of task 't' does not fit int"):
        task.encode([DAY], {"args": "x"})


def test_a_keyword_that_is_not_known_is_told_those_that_are() -> None:
    def function(a: int, /, b: int = 1, *, c: int = 2) -> None: ...

    task = TaskSignature("t", function, None)
    with pytest.raises(InvalidInput, match="takes the argument 'a' by its position, not by its name"):
        task.encode([1], {"a": 3})
    with pytest.raises(InvalidInput, match="takes no argument 'd'; it takes b, c"):
        task.encode([1], {"d": 3})


def result(kind: Any, value: Any) -> Outcome:
    return returned(value, signature=signature(kind, "return"))


@pytest.mark.parametrize(
    ("kind", "value", "words"),
    [
        (int, 5.5, "its result does not fit int: Expected `int`, got `float`"),
        (int, None, "its result does not fit int: Expected `int`, got `null`"),
        (None, 5, "its result does not fit NoneType: Expected `null`, got `int`"),
        (str, DAY, "its result is a date, which would come back as a str"),
        (list[str], [DAY], "its result has a date, which would come back as a str"),
        (bytes, "abcd", "its result is text, which would come back as the bytes of its base64; give bytes"),
        (Login, Login(user="a", session="s"), "its result would come back changed in its field 'session'; its class"),
        (pydantic.SecretStr, pydantic.SecretStr("x"), "its result is a SecretStr, which would come back changed; a "),
        (pydantic.PositiveInt, -1, "its result does not fit int: Input should be greater than 0"),
        (Decimal, Decimal("NaN"), "its result is NaN, which is not a number in JSON"),
        (Order, Parcel(1), "its result does not fit Order: Object missing required field `day`"),
    ],
)
def test_a_result_that_is_not_what_its_annotation_says_fails_at_once(kind: Any, value: Any, words: str) -> None:
    outcome = result(kind, value)
    assert outcome.kind is OutcomeKind.ABORTED
    assert (outcome.reason or "").startswith(words)


@pytest.mark.parametrize(
    ("kind", "value", "stored"),
    [
        (Any, DAY, '"2026-03-01"'),
        (object, {1}, "[1]"),
        (dict, {1: b"x"}, '{"1":"eA=="}'),
        (dict[str, Any], {"at": DAY}, '{"at":"2026-03-01"}'),
        (list[object], [Order(DAY)], '[{"day":"2026-03-01","logins":[]}]'),
        (int, True, "1"),
        (dict[str, int], {"ok": True}, '{"ok":1}'),
        (float, 5, "5"),
        (str, Colour.RED, '"red"'),
        (list[int], (1, 2), "[1,2]"),
        (Order | None, Order(DAY), '{"day":"2026-03-01","logins":[]}'),
        (Path, Path("x"), '"x"'),
    ],
)
def test_what_an_annotation_leaves_open_and_what_fits_it_is_a_result(kind: Any, value: Any, stored: str) -> None:
    assert result(kind, value) == Outcome(OutcomeKind.RETURNED, result=stored)


def test_a_result_of_a_subclass_comes_back_as_the_class_of_the_annotation() -> None:
    @dataclasses.dataclass
    class Express(Order):
        hours: int = 24

    outcome = result(Order, Express(DAY))
    assert outcome.result is not None
    back = signature(Order, "return").decode_result(msgspec.json.decode(outcome.result))
    assert (type(back), back) == (Order, Order(DAY))


def test_a_function_without_annotation_returns_what_json_makes_of_it() -> None:
    task = TaskSignature("t", lambda: None, None)
    assert returned(DAY, signature=task).result == '"2026-03-01"'
    assert returned(None, signature=task).result is None


def test_the_annotations_of_a_partial_are_those_of_its_function() -> None:
    def function(a: int, day: dt.date) -> dt.date:
        return day

    task = TaskSignature("t", functools.partial(function, 1), None)
    assert task.encode([DAY], {}) == (["2026-03-01"], {})
