"""Channels, rules, deliveries and incidents as REST takes them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from ostinato.api.shapes.base import PagedQuery, ProjectFilter, QueryParameters, RequestBody, Text, Zone

__all__ = ["Ack", "DeliveryQuery", "IncidentQuery", "NewChannel", "NewRule", "RemoveChannel"]

Kind = Literal["failed", "broken", "recovered", "missed", "late", "succeeded", "run"]


class NewChannel(RequestBody):
    """A channel to add. Of an existing one of this name, what is given is changed; "none" takes a value away."""

    name: Annotated[Text, Field(min_length=1, max_length=64)]
    url: Annotated[
        Text | None,
        Field(
            min_length=1,
            max_length=4096,
            description="An apprise URL, telegram://CHAT, or a reference: env:NAME, file:PATH. It is never shown. "
            "Without it, an existing channel keeps its own.",
        ),
    ] = None
    note: Annotated[Text | None, Field(max_length=10_000)] = None
    quiet: Annotated[Text | None, Field(description="Hours in which nothing is sent, such as 22:00-07:00.")] = None
    digest: Annotated[
        Text | None, Field(description="Send everything as one message at these times, such as daily 08:00.")
    ] = None
    zone: Annotated[Zone | None, Field(description="Of these hours and times.")] = None
    cool_down: Annotated[
        Text | None,
        Field(description="How long it hears nothing more of trouble that ends and comes back, such as 15m."),
    ] = None


class RemoveChannel(QueryParameters):
    """How a channel is removed."""

    force: Annotated[bool, Field(description="Though schedules name it: they tell it nothing more.")] = False


class NewRule(RequestBody):
    """A rule to add. One of the same channel and project is replaced."""

    channel: Annotated[Text, Field(min_length=1, max_length=64)]
    on: Annotated[
        list[Kind] | None,
        Field(
            min_length=1,
            description="What it is told of; by default failed, broken, recovered, missed and late, and with a digest "
            "nothing else.",
        ),
    ] = None
    project: Annotated[Text | None, Field(description="Only what belongs to this project; of all without it.")] = None
    digest: Annotated[
        Text | None, Field(description="Send a summary of all runs at these times, such as daily 08:00.")
    ] = None
    zone: Annotated[Zone | None, Field(description="Of these times.")] = None


class DeliveryQuery(PagedQuery):
    """Which deliveries to list, the newest first."""

    channel: Annotated[Text | None, Field(max_length=64)] = None
    state: Literal["pending", "sending", "sent", "failed", "dropped"] | None = None


class IncidentQuery(PagedQuery):
    """Which incidents to list: those that are open first, then the newest."""

    state: Literal["open", "closed"] | None = None
    subject: Annotated[Text | None, Field(max_length=400, description="A schedule, a task or a kind of work.")] = None
    project: ProjectFilter = None


class Ack(RequestBody):
    """What is done about an incident."""

    note: Annotated[Text | None, Field(max_length=10_000)] = None
