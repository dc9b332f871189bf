"""A policy as REST shows and takes it. Durations are text; what a value must be, the model says."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler, ValidationInfo, field_validator
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from ostinato.api.fields import under
from ostinato.api.shapes.base import Answer, Asked, Text
from ostinato.api.shapes.work import Command
from ostinato.models.policy import make_policy

__all__ = ["NewPolicy", "NewRetry", "Policy", "RetryValue", "given_policy"]

Overlap = Literal["skip", "queue_one", "queue_all", "cancel_running", "allow"]
CatchUp = Literal["none", "latest", "all"]
OnLostLease = Literal["stop", "continue"]


class Retry(Answer):
    """`max` more attempts; the delay doubles from `base` up to `longest`, give or take `spread`."""

    max: int
    base: str
    longest: str
    spread: float


class Keep(Answer):
    """How long ended runs stay; null is no bound."""

    age: str | None
    count: int | None


class Gate(Answer):
    """A command that says whether there is anything to do."""

    command: str | list[str]
    timeout: str


class Budget(Answer):
    """Bounds on what runs cost; null is no bound."""

    per_run_usd: float | None
    per_day_usd: float | None
    per_day_runs: int | None


class Policy(Answer):
    """How a schedule and its runs are treated."""

    overlap: Overlap
    catch_up: CatchUp
    catch_up_window: str
    catch_up_cap: int
    retry: Retry
    timeout: str | None
    max_age: str | None
    break_after: int
    lane: str
    priority: int
    session: str | None
    checks: list[str]
    gate: Gate | None
    budget: Budget | None
    notify: list[str]
    keep: Keep
    remaining: int | None
    delete_after_run: bool
    on_lost_lease: OnLostLease


class NewRetry(Asked):
    """What changes of the retries; the rest stays."""

    max: int = 3
    base: Text = "2s"
    longest: Text = "30s"
    spread: float = 0.25


class NewKeep(Asked):
    """What changes of how long ended runs stay."""

    age: Text | None = "30d"
    count: int | None = 1000


class NewGate(Asked):
    """A command that runs before the work and says, as JSON on its last line, whether there is anything to do."""

    command: Command
    timeout: Text = "30s"


class NewBudget(Asked):
    """Bounds on what the runs of a schedule cost."""

    per_run_usd: float | None = None
    per_day_usd: float | None = None
    per_day_runs: int | None = None


class _Short:
    """The short form of an object that has one field above all: a retry is a number, a gate a command, keep an age.

    One that has none says what it is instead.
    """

    def __init__(self, name: str, *kinds: type, words: str, **schema: Any) -> None:
        self._name = name
        self._kinds = kinds
        self._words = words
        self._schema = schema

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self._lengthen, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"anyOf": [self._schema, handler(schema)]} if self._kinds else handler(schema)

    def _lengthen(self, value: Any) -> Any:
        if isinstance(value, dict):
            return value
        if isinstance(value, bool) or not isinstance(value, self._kinds):
            raise PydanticCustomError("short", "give {words}", {"words": self._words})
        return {self._name: value}


RetryValue = Annotated[
    NewRetry,
    _Short("max", int, words="a number of retries, or an object with max, base, longest, spread", type="integer"),
]
GateValue = Annotated[
    NewGate,
    _Short("command", str, list, words="a command, or an object with command, timeout", type="string"),
]
KeepValue = Annotated[
    NewKeep,
    _Short(
        "age",
        str,
        words='an age such as "30d", or an object with age, count, such as {"age": "30d", "count": 1000}',
        type="string",
    ),
]
BudgetValue = Annotated[
    NewBudget,
    _Short("", words='an object with per_run_usd, per_day_usd, per_day_runs, such as {"per_day_usd": 5}'),
]


class NewPolicy(Asked):
    """The fields of a policy that are given; the others are the defaults, or stay as they are."""

    overlap: Annotated[
        Overlap,
        Field(description="What to do with a due time while a run is under way."),
    ] = "skip"
    catch_up: Annotated[CatchUp, Field(description="Which due times of a downtime are run afterwards.")] = "latest"
    catch_up_window: Annotated[Text, Field(description="How far back due times are caught up.")] = "24h"
    catch_up_cap: Annotated[int, Field(description="At most so many, for catch_up all.")] = 1000
    retry: Annotated[RetryValue, Field(description="How often and after which delay a failed attempt is repeated.")] = (
        NewRetry()
    )
    timeout: Annotated[Text | None, Field(description="How long an attempt may take; null is no limit.")] = None
    max_age: Annotated[Text | None, Field(description="Waited longer than this since due: expired.")] = None
    break_after: Annotated[int, Field(description="So many scheduled runs failed in a row: it is switched off.")] = 3
    lane: Annotated[Text, Field(description="The pool that limits how many are under way at once.")] = "cron"
    priority: Annotated[int, Field(description="The greater one goes first in its lane.")] = 0
    session: Annotated[Text | None, Field(description="Its runs go one after the other with this key.")] = None
    checks: Annotated[
        list[Text], Field(default_factory=list, description="Tests that must pass before it can be enabled or fired.")
    ]
    gate: Annotated[
        GateValue | None,
        Field(description="A command that is asked before the work whether there is anything to do."),
    ] = None
    budget: Annotated[BudgetValue | None, Field(description="What its runs may cost.")] = None
    notify: Annotated[list[Text], Field(default_factory=list, description="Who is told.")]
    keep: Annotated[KeepValue, Field(description="How long ended runs stay.")] = NewKeep()
    remaining: Annotated[int | None, Field(description="It runs so many times more, then it is finished.")] = None
    delete_after_run: Annotated[bool, Field(description="Delete it when its last run has succeeded.")] = False
    on_lost_lease: Annotated[
        OnLostLease, Field(description="What becomes of running work when its node cannot renew its lease.")
    ] = "stop"
    run_once: Annotated[bool, Field(description="The same as remaining 1.")] = False

    @field_validator("*")
    @classmethod
    def _usable(cls, value: Any, info: ValidationInfo) -> Any:
        """What the model says of this field, so that it is told together with what is wrong with the others."""
        given = value.model_dump(exclude_unset=True, exclude_none=True) if isinstance(value, Asked) else value
        # An empty one may still change what is there, which only the service knows.
        if given != {}:
            with under("policy"):
                make_policy({str(info.field_name): given})
        return value


def given_policy(policy: NewPolicy | None) -> dict[str, Any]:
    """What was given, as the service takes it."""
    return {} if policy is None else policy.model_dump(exclude_unset=True)
