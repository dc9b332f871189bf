"""A policy as REST takes it, made of the table of policies. Durations are text; what a value must be, the
model says.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from enum import EnumType
from inspect import Parameter, cleandoc
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import (
    BaseModel,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    ValidationInfo,
    create_model,
    field_validator,
)
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from ostinato.api.fields import PART, under
from ostinato.api.shapes.base import RequestBody, Text
from ostinato.api.shapes.work import Command
from ostinato.errors import InvalidInput
from ostinato.models.channel_url import HIDDEN
from ostinato.models.policy import make_policy, plain
from ostinato.models.policy_fields import POLICIES, RUN_ONCE, SECRET_POLICIES, PolicyField
from ostinato.models.policy_values import Budget, Gate, Keep, Retry

__all__ = ["BudgetValue", "NewPolicy", "RetryValue", "given_policy"]

M = TypeVar("M", bound=BaseModel)


def _filled(shape: type[M], fields: dict[str, Any], name: str = "", doc: str | None = None) -> type[M]:
    """The shape with these fields."""
    return create_model(
        name or shape.__name__, __base__=shape, __module__=__name__, __doc__=doc or shape.__doc__, **fields
    )


def _json_type(field: PolicyField) -> Any:
    """The type of a field as JSON has it."""
    kind: Any = Command
    if isinstance(field.type, EnumType):
        kind = Literal[tuple(map(str, field.type))]
    elif field.type in _REQUESTS:
        kind = _REQUESTS[field.type]
    elif field.type in (bool, int, float):
        kind = field.type
    elif field.type in (str, timedelta):
        kind = Text
    elif isinstance(field.default, tuple):
        kind = list[Text]
    return kind | None if field.is_nullable else kind


def _given(fields: Iterable[PolicyField]) -> dict[str, Any]:
    """Fields of a request: each with its default, and a sentence about it."""
    return {field.name: (_json_type(field), _described(field)) for field in fields}


def _described(field: PolicyField) -> Any:
    is_limit = field.is_nullable and field.type in (timedelta, int, float)
    description = f"{field.about.help} Null means no limit." if is_limit else field.about.help
    if field.default is Parameter.empty:
        return Field(description=description)
    if isinstance(field.default, tuple):
        return Field(default_factory=list, description=description)
    return Field(default=plain(field.default), description=description)


def _doc(kind: type[Any]) -> str:
    return cleandoc(kind.__doc__ or "").partition("\n\n")[0].replace("None", "null")


class _Short:
    """The short form of an object that has one field above all: a retry is a number, a gate a command, keep an age.

    One that has none says what it is instead.
    """

    def __init__(self, shape: type[RequestBody], name: str, *kinds: type, words: str, **schema: Any) -> None:
        self._shape = shape
        self._name = name
        self._kinds = kinds
        self._words = words
        self._schema = schema

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self._lengthen, handler(self._shape))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"anyOf": [self._schema, handler(schema)]} if self._kinds else handler(schema)

    def _lengthen(self, value: Any) -> Any:
        if isinstance(value, dict):
            return value
        if isinstance(value, bool) or not isinstance(value, self._kinds):
            raise PydanticCustomError("short", "give {words}", {"words": self._words})
        return {self._name: value}


class _Parts(RequestBody):
    """The parts of a value."""

    policy: ClassVar[PolicyField]

    @field_validator("*")
    @classmethod
    def _usable(cls, value: Any, info: ValidationInfo) -> Any:
        """What the model says of this part alone, so that it is told together with what is wrong with the others."""
        needed = {part.name: "true" for part in cls.policy.parts if part.default is Parameter.empty}
        if value is not None:
            try:
                make_policy({cls.policy.name: {**needed, str(info.field_name): value}})
            except InvalidInput as error:
                said = str(error).removesuffix(f"; {error.hint}")
                raise PydanticCustomError(PART, "{said}", {"said": said, "hint": error.hint}) from None
        return value


def _new(field: PolicyField) -> type[RequestBody]:
    shape = _filled(_Parts, _given(field.parts), f"New{field.type.__name__}", _doc(field.type))
    shape.policy = field
    return shape


_REQUESTS: dict[Any, Any] = {}
_NEW = {field.type: _new(field) for field in POLICIES.values() if field.parts}

RetryValue = Annotated[
    Any,
    _Short(
        _NEW[Retry],
        "max",
        int,
        words="a number of retries, or an object with max, base, longest, spread, covers, on, never",
        type="integer",
    ),
]
BudgetValue = Annotated[
    Any,
    _Short(_NEW[Budget], "", words='an object with per_run_usd, per_day_usd, per_day_runs, such as {"per_day_usd": 5}'),
]
_REQUESTS |= {
    Retry: RetryValue,
    Gate: Annotated[
        Any,
        _Short(_NEW[Gate], "command", str, list, words="a command, or an object with command, timeout", type="string"),
    ],
    Keep: Annotated[
        Any,
        _Short(
            _NEW[Keep],
            "age",
            str,
            words='an age such as "30d", or an object with age, count, such as {"age": "30d", "count": 1000}',
            type="string",
        ),
    ],
    Budget: BudgetValue,
}


def _whole_request(shape: type[M]) -> type[M]:
    once = (bool, Field(default=False, description="The same as remaining 1."))
    return _filled(shape, {**_given(POLICIES.values()), RUN_ONCE: once})


@_whole_request
class NewPolicy(RequestBody):
    """The fields of a policy that are given; the others are the defaults, or stay as they are."""

    @field_validator("*")
    @classmethod
    def _usable(cls, value: Any, info: ValidationInfo) -> Any:
        """What the model says of this field, so that it is told together with what is wrong with the others."""
        given = value.model_dump(exclude_unset=True, exclude_none=True) if isinstance(value, RequestBody) else value
        # An empty one may still change what is there, and stars may stand for a secret that stays: only the service
        # knows.
        if given != {} and (given != HIDDEN or info.field_name not in SECRET_POLICIES):
            with under("policy"):
                make_policy({str(info.field_name): given})
        return value


def given_policy(policy: NewPolicy | None) -> dict[str, Any]:
    """What was given, as the service takes it."""
    return {} if policy is None else policy.model_dump(exclude_unset=True)
