"""Types and functions of tasks whose arguments are more than JSON; imported by the child of isolation="process" too."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import attrs
import msgspec
import pydantic

if TYPE_CHECKING:
    from somewhere import OnlyChecked  # type: ignore[import-not-found]


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Order:
    id: UUID
    price: Decimal
    at: datetime | None = None


class Parcel(msgspec.Struct):
    colour: Colour
    orders: list[Order]
    more: Any = None


@attrs.define
class Place:
    path: Path


class Customer(pydantic.BaseModel):
    name: str
    born: date


class Company(pydantic.BaseModel):
    vat: str


def same(value: Any) -> str:
    """What arrived, told by its type and its text."""
    return f"{type(value).__name__} {value!r}"


def take_datetime(value: datetime) -> str:
    return same(value)


def take_date(value: date) -> str:
    return same(value)


def take_timedelta(value: timedelta) -> str:
    return same(value)


def take_uuid(value: UUID) -> str:
    return same(value)


def take_decimal(value: Decimal) -> str:
    return same(value)


def take_enum(value: Colour) -> str:
    return same(value)


def take_bytes(value: bytes) -> str:
    return same(value)


def take_path(value: Path) -> str:
    return same(value)


def take_dataclass(value: Order) -> str:
    return same(value)


def take_struct(value: Parcel) -> str:
    return same(value)


def take_attrs(value: Place) -> str:
    return same(value)


def take_pydantic(value: Customer) -> str:
    return same(value)


def take_models(value: Customer | Company) -> str:
    return same(value)


def take_list(value: list[UUID]) -> str:
    return same(value)


def take_dict(value: dict[str, Decimal]) -> str:
    return same(value)


def take_optional(value: Later | None) -> str:
    return same(value)


def take_set(value: set[int]) -> str:
    return same(value)


def take_unresolvable(value: OnlyChecked) -> str:
    return same(value)


def echo(value: Parcel) -> Parcel:
    return value


async def echo_async(value: Customer) -> Customer:
    return value


def not_a_number() -> float:
    return float("nan")


def lie() -> int:
    return "text"  # type: ignore[return-value]


def much(size: int) -> str:
    return "x" * size


@dataclass
class Later:
    """Defined after the function that names it."""

    colour: Colour
