"""Work as REST shows and takes it: one of four kinds, told apart by `kind`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field, WithJsonSchema

from ostinato.api.fields import under
from ostinato.api.shapes.base import RequestBody, Text
from ostinato.models.work import Agent, Function, Http, Shell
from ostinato.models.work import Work as WorkModel

__all__ = ["Command", "NewWork", "make_work"]

Command = Annotated[
    Any, WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]})
]
"""A text for a shell, or the program and its arguments. What is wrong with it, the model says."""

_Size = Annotated[Any, WithJsonSchema({"anyOf": [{"type": "integer"}, {"type": "string"}, {"type": "null"}]})]
_Seconds = Annotated[Any, WithJsonSchema({"anyOf": [{"type": "number"}, {"type": "string"}, {"type": "null"}]})]
_Expected = Annotated[
    list[Any],
    WithJsonSchema({"type": "array", "items": {"anyOf": [{"type": "integer"}, {"type": "string"}]}}),
]


class NewFunctionWork(RequestBody):
    """Call a task by its name with these arguments."""

    kind: Literal["function"]
    task: Annotated[Text, Field(min_length=1, max_length=200)]
    args: Annotated[list[Any], Field(default_factory=list)]
    kwargs: Annotated[dict[str, Any], Field(default_factory=dict)]


class NewShellWork(RequestBody):
    """Run a command: a text goes through `sh -c`, a list is executed as it is."""

    kind: Literal["shell"]
    command: Command
    env: Annotated[
        dict[Text, Text], Field(default_factory=dict, description="May hold references: env:NAME, file:PATH.")
    ]
    folder: Annotated[Text | None, Field(description="Relative to the project's folder.")] = None
    user: Text | None = None
    nice: int | None = None
    memory: Annotated[_Size, Field(description='Bytes, or text such as "512MB".')] = None
    cpu: Annotated[_Seconds, Field(description='Processor time in seconds, or text such as "1m".')] = None


class NewAgentWork(RequestBody):
    """Give a prompt to an AI agent's command line."""

    kind: Literal["agent"]
    prompt: Text
    context: Annotated[Text, Field(description="isolated, group or session:NAME")] = "isolated"
    cli: Annotated[Text, Field(description="One of the agents of the settings.")] = "claude"
    model: Text | None = None
    system: Text | None = None
    permission_mode: Text | None = None
    allowed_tools: Annotated[list[Text], Field(default_factory=list)]
    mcp_config: Text | None = None
    env: Annotated[dict[Text, Text], Field(default_factory=dict)]
    folder: Text | None = None


class NewHttpWork(RequestBody):
    """Send a request. A status that is not among `expect` fails the run."""

    model_config = ConfigDict(serialize_by_alias=True)

    kind: Literal["http"]
    method: Text = "GET"
    url: Text
    headers: Annotated[
        dict[Text, Text], Field(default_factory=dict, description="May hold references: env:NAME, Bearer file:PATH.")
    ]
    json_: Annotated[Any, Field(alias="json")] = None
    body: Text | None = None
    expect: Annotated[_Expected, Field(default_factory=lambda: ["2xx"], description='For example 204 or "2xx".')]


_AnyWork = NewFunctionWork | NewShellWork | NewAgentWork | NewHttpWork
_KINDS: dict[str, type[WorkModel]] = {"function": Function, "shell": Shell, "agent": Agent, "http": Http}


def make_work(asked: _AnyWork) -> WorkModel:
    """The work that was asked for; what is wrong with it is told by its field, work.command say."""
    given = asked.model_dump(by_alias=True)
    with under("work"):
        return _KINDS[given.pop("kind")](**given)


def _makeable(asked: _AnyWork) -> _AnyWork:
    make_work(asked)
    return asked


NewWork = Annotated[_AnyWork, Field(discriminator="kind"), AfterValidator(_makeable)]
"""Work that can be made: what is wrong with it is told together with what else is wrong with the request."""
