"""JSON Schemas of what is answered: msgspec makes them of the types, and the text under a field describes it.

`openapi.py` puts them into the document; `answers.py` encodes what they describe.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import is_dataclass
from datetime import datetime
from functools import cache
from itertools import pairwise
from typing import Any, get_args, get_origin, get_type_hints

import msgspec

from ostinato.api.answers import Zoned
from ostinato.models.policy_values import About
from ostinato.service.answers import Zone

__all__ = ["answer_schemas"]

Schema = dict[str, Any]

_REFERENCE = "#/components/schemas/{name}"
_NAMES = {"Activity": "Bucket", "Browser": "Login", "Day": "HistoryDay", "TaskInfo": "Task", "WhyAnswer": "Why"}
"""What is called otherwise in the document than in the code."""


def answer_schemas(types: Iterable[Any]) -> tuple[list[Schema], dict[str, Schema]]:
    """For each type its schema, and the components that these refer to."""
    plain = [_flat(kind) if get_origin(kind) is Zoned else kind for kind in types]
    schemas, components = msgspec.json.schema_components(plain, ref_template=_REFERENCE)
    classes: dict[str, type] = {}
    for kind in plain:
        _collect(kind, classes)
    for name, kind in classes.items():
        _complete(components[name], kind)
    enums = {name: components.pop(name) for name, schema in [*components.items()] if "enum" in schema}
    for schema in enums.values():
        del schema["title"]
    named = {_name(name): _resolved(schema, enums) for name, schema in components.items()}
    for name, schema in named.items():
        schema["title"] = name
    return [_resolved(schema, enums) for schema in schemas], named


@cache
def _flat(zoned: Any) -> type:
    """The fields of what is told, and its zone, in one class: so it is encoded."""
    (kind,) = get_args(zoned)
    fields = [*get_type_hints(kind, include_extras=True).items(), ("zone", Zone)]
    return msgspec.defstruct(f"{kind.__name__}Answer", fields, namespace={"__doc__": kind.__doc__, "__model__": kind})


def _collect(hint: Any, found: dict[str, type]) -> None:
    """Every class with fields that a type is made of, by its name among the components of msgspec."""
    kind = get_origin(hint) or hint
    parts = get_args(hint)
    if isinstance(kind, type) and (issubclass(kind, msgspec.Struct) or is_dataclass(kind)):
        name = f"{kind.__name__}_{parts[0].__name__}_" if parts else kind.__name__
        if name in found:
            return
        found[name] = kind
        bases = (part for base in getattr(kind, "__orig_bases__", ()) for part in get_args(base))
        parts = (*parts, *bases, *get_type_hints(kind).values())
    for part in parts:
        _collect(part, found)


def _complete(schema: Schema, kind: type) -> None:
    """What msgspec does not know: that every field of a model is told, that durations are text, and what is what."""
    schema["description"] = inspect.cleandoc(schema.get("description", ""))
    if is_dataclass(kind):
        schema["required"] = [*schema["properties"]]
    written = dict(
        zip(getattr(kind, "__struct_fields__", ()), getattr(kind, "__struct_encode_fields__", ()), strict=True)
    )
    notes = {**_helps(kind), **_notes(kind)}
    for name, hint in get_type_hints(kind).items():
        part = schema["properties"].get(written.get(name, name))
        if part is None:
            continue  # a constant of the class
        part.pop("default", None)
        forms = [part, *part.get("anyOf", ()), *([part["items"]] if "items" in part else ())]
        for form in forms:
            if form.get("format") == "duration":
                del form["format"]
            elif form.get("type") == "string" and _holds_times(hint):
                form["format"] = "date-time"
        if name in notes:
            part["description"] = notes[name]


def _helps(kind: type) -> dict[str, str]:
    """What the table of policies says of its fields."""
    hints = get_type_hints(kind, include_extras=True)
    return {name: one.help for name, hint in hints.items() for one in get_args(hint) if isinstance(one, About)}


def _holds_times(hint: Any) -> bool:
    return hint is datetime or any(_holds_times(part) for part in get_args(hint))


@cache
def _notes(kind: type) -> Mapping[str, str]:
    """The text under each field of a class, in its source and in those of what it tells and inherits from."""
    model = getattr(kind, "__model__", None)
    found = {} if model is None else dict(_notes(model))
    for one in reversed(kind.__mro__):
        for field, text in pairwise(_statements(one)):
            match field, text:
                case ast.AnnAssign(target=ast.Name(name)), ast.Expr(ast.Constant(str(note))):
                    found[name] = " ".join(note.split())
    return found


def _statements(kind: type) -> list[ast.stmt]:
    if not kind.__module__.startswith("ostinato."):
        return []
    nodes = _tree(kind.__module__).body
    return next((node.body for node in nodes if isinstance(node, ast.ClassDef) and node.name == kind.__name__), [])


@cache
def _tree(module: str) -> ast.Module:
    # A program that was packed without its sources says less of itself.
    with suppress(OSError, TypeError):
        return ast.parse(inspect.getsource(sys.modules[module]))
    return ast.Module([], [])


def _name(name: str) -> str:
    """`Listed_Lane_` is a LaneList."""
    kind, _, inner = name.removesuffix("_").partition("_")
    if inner:
        return f"{_name(inner)}{kind.removesuffix('ed')}"
    return _NAMES.get(name, name)


def _resolved(node: Any, enums: Mapping[str, Schema]) -> Any:
    """With the names of the document; the words of an enum stand where it is used."""
    if isinstance(node, list):
        return [_resolved(part, enums) for part in node]
    if not isinstance(node, dict):
        return node
    name = str(node.get("$ref", "")).rpartition("/")[2]
    if name in enums:
        node = {**enums[name], **{key: part for key, part in node.items() if key != "$ref"}}
    elif name:
        return {**node, "$ref": _REFERENCE.format(name=_name(name))}
    more: Schema = {"type": "string"} if "enum" in node else {}
    if node.get("type") == "object" and "properties" not in node:
        more = {"additionalProperties": True}  # whatever it says
    return more | {key: _resolved(part, enums) for key, part in node.items()}
