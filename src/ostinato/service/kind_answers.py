"""Kinds of work as plain JSON: what a form needs to ask for them."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from ostinato.models.installed_kinds import added_kinds, installed_kinds
from ostinato.models.kind_parts import of_each_kind
from ostinato.models.work_kinds import FieldForm, WorkKind
from ostinato.service.answers import Answer

__all__ = ["Kind", "KindField", "KindList", "kind_answers"]


class KindField(Answer):
    """A field of a kind of work."""

    name: str
    label: str
    help: str
    form: FieldForm
    """How it is written."""
    required: bool
    nullable: bool
    default: Any
    secret: bool
    """Values may be references to secrets: env:NAME, file:PATH."""
    choices: list[str]
    has_numbers: bool
    """Those of its texts that are digits are numbers."""


class Kind(Answer):
    """A kind of work, and its fields."""

    name: str
    label: str
    help: str
    added: bool
    """A package adds it; the fields of the others are as their schemas say."""
    needs_admin: bool
    """Only an admin may create or change such work."""
    timeout: str | None
    """How long an attempt may take, unless its policy says otherwise."""
    fields: list[KindField]


class KindList(Answer):
    """Every kind of work."""

    items: list[Kind]


@cache
def kind_answers() -> KindList:
    """Every kind of work, as a form needs it."""
    return KindList([*of_each_kind(_kind_answer, "form", installed_kinds()).values()])


def _kind_answer(kind: WorkKind) -> Kind:
    told = [
        KindField.of(
            one,
            help=one.about.help,
            secret=one.about.secret,
            required=one.is_required and one.about.standard is None,
            default=one.about.standard if one.is_required else one.default,
            nullable=one.is_nullable,
        )
        for one in kind.fields
    ]
    made = Kind.of(kind, label=kind.title, added=kind.name in added_kinds(), fields=told)
    msgspec.json.encode(made)  # raises where it could not be told
    return made
