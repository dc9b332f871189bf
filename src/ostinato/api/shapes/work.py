"""Work as REST takes it: one of the installed kinds, told apart by `kind`, each made of its description."""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from functools import partial, reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any, Literal, Optional

from pydantic import AfterValidator, ConfigDict, Field, TypeAdapter, WithJsonSchema, create_model

from ostinato.api.fields import under
from ostinato.api.shapes.base import RequestBody, Text
from ostinato.models.installed_kinds import installed_kinds, kind_of
from ostinato.models.kind_parts import of_each_kind
from ostinato.models.work import Agent
from ostinato.models.work_kinds import FieldForm, KindField, Work, WorkKind
from ostinato.service.answers import camel

__all__ = ["Command", "NewAgent", "NewWork", "make_agent", "make_work"]


def _checked_by_model(kind: Any) -> Any:
    """What is wrong with it, the model says, in better words than a list of what does not match."""
    return Annotated[Any, WithJsonSchema(TypeAdapter(kind).json_schema())]


Command = _checked_by_model(str | list[str])
"""A text for a shell, or the program and its arguments."""


def _type(one: KindField) -> Any:
    return Optional[_plain(one)] if one.is_nullable else _plain(one)  # noqa: UP045  # made of a value


def _plain(one: KindField) -> Any:
    if one.plain is str:
        return Text if one.about.longest is None else Annotated[Text, Field(min_length=1, max_length=one.about.longest)]
    if one.plain == list[str]:
        return list[Text]
    match one.form:
        case FieldForm.PAIRS:
            return dict[Text, Text]
        case FieldForm.TEXTS:
            return Annotated[list[Any], WithJsonSchema(TypeAdapter(one.plain).json_schema())]
        case FieldForm.TEXT | FieldForm.COMMAND:
            return _checked_by_model(one.plain)
        case _:
            return one.plain


def _field(one: KindField) -> Any:
    default: Any = one.about.standard if one.is_required else one.default
    told: dict[str, Any] = {"description": one.about.help or None}
    if isinstance(default, (list, dict)):
        told["default_factory"] = type(default) if not default else partial(deepcopy, default)
    elif not one.is_required or default is not None:
        told["default"] = default
    if hasattr(RequestBody, one.name):  # such as json, which pydantic's classes have for themselves
        told["alias"] = one.name
    return Field(**told)


class _WorkRequest(RequestBody):
    model_config = ConfigDict(serialize_by_alias=True)


def _fields(fields: Iterable[KindField]) -> dict[str, Any]:
    return {f"{one.name}_" if hasattr(RequestBody, one.name) else one.name: (_type(one), _field(one)) for one in fields}


def _request(kind: WorkKind) -> type[RequestBody]:
    named: Any = {"kind": (Literal[kind.name], ...), **_fields(kind.fields)}
    name = f"New{camel(kind.name)}Work"
    made = create_model(name, __base__=_WorkRequest, __module__=__name__, __doc__=kind.help, **named)
    made.model_json_schema()  # raises where it could not be described
    return made


def make_work(asked: Any) -> Work:
    """The work that was asked for; what is wrong with it is told by its field, work.command say."""
    given = asked.model_dump(by_alias=True)
    with under("work"):
        return installed_kinds()[given.pop("kind")].make(**given)


def make_agent(asked: Any) -> Agent:
    """The agent that a message is for: the message is its prompt."""
    with under("agent"):
        return Agent(**asked.model_dump(by_alias=True))


def _usable(asked: Any) -> Any:
    make_agent(asked)
    return asked


def _makeable(asked: Any) -> Any:
    make_work(asked)
    return asked


if TYPE_CHECKING:
    NewWork = Any
    NewAgent = Any
else:
    _AGENT = kind_of(Agent())
    _NEW_AGENT = create_model(
        "NewAgent",
        __base__=_WorkRequest,
        __module__=__name__,
        __doc__="Who gets a message as a prompt. Without a context, it continues the session's conversation.",
        **_fields(one for one in _AGENT.fields if one not in _AGENT.main_fields),
    )
    NewAgent = Annotated[_NEW_AGENT, AfterValidator(_usable)]
    _REQUESTS = of_each_kind(_request, "request", installed_kinds())
    NewWork = Annotated[reduce(or_, _REQUESTS.values()), Field(discriminator="kind"), AfterValidator(_makeable)]
"""Work that can be made: what is wrong with it is told together with what else is wrong with the request."""
