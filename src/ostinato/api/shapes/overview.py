"""The overview, the timeline and the preview of a timing as REST shows them."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ostinato.api.shapes.base import Moment, ProjectFilter, QueryParameters, RequestBody, Text, Zone

__all__ = ["PreviewQuery", "TimelineQuery", "TimingToPreview"]


class TimelineQuery(QueryParameters):
    """Which span, at most 31 days."""

    from_: Annotated[Moment, Field(alias="from")]
    to: Moment
    schedule: Text | None = None
    project: ProjectFilter = None
    limit: Annotated[int, Field(ge=1, le=2000)] = 500


class PreviewQuery(QueryParameters):
    """A timing to explain."""

    text: Annotated[Text, Field(max_length=10_000)]
    zone: Annotated[Zone | None, Field(description="An IANA name; the zone of the settings if left out.")] = None
    name: Annotated[Text | None, Field(description="Of the schedule: it chooses the H of cron.", max_length=200)] = None
    n: Annotated[int, Field(ge=1, le=100, description="How many due times.")] = 5
    after: Annotated[Moment | None, Field(description="List due times after this time, not after now.")] = None


class TimingToPreview(RequestBody):
    """A timing to explain."""

    text: Annotated[Text, Field(max_length=10_000)]
    zone: Zone | None = None
    name: Annotated[Text | None, Field(description="Of the schedule: it chooses the H of cron.", max_length=200)] = None
    n: Annotated[int, Field(ge=1, le=100)] = 5
    after: Moment | None = None
