"""The description of the API: what FastAPI finds in the routes, and what holds for all of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from ostinato.api.access import OPEN_PATHS, needed_role
from ostinato.api.answers import problems
from ostinato.api.idempotency import takes_key
from ostinato.api.problems import Problem
from ostinato.api.redaction import HIDDEN, may_be_hidden
from ostinato.api.schemas import answer_schemas
from ostinato.api.security import SAFE_METHODS
from ostinato.models.access import Role
from ostinato.models.installed_kinds import added_kinds
from ostinato.models.work_kinds import FieldForm
from ostinato.service.answers import added_work

__all__ = ["describe"]

_EVERYWHERE = (401, 403, 421, 422, 429, 503)
_SECURITY = {
    "token": {"type": "http", "scheme": "bearer", "description": "A token made with `ostinato token add`"},
    "login": {
        "type": "apiKey",
        "in": "cookie",
        "name": "ostinato-8321",
        "description": "The cookie of POST /api/login; its name ends with the port of the server",
    },
    "origin": {
        "type": "apiKey",
        "in": "header",
        "name": "X-Origin-Key",
        "description": "`origin_key` of POST /api/login; the cookie is only valid together with it",
    },
}
_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "A request sent again with the same key within a day gets the first answer and does nothing.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[!-~]([ -~]*[!-~])?$"},
}


def describe(app: FastAPI, routes: Iterable[APIRoute]) -> dict[str, Any]:
    """The OpenAPI document; `routes` are those that may need a role."""
    document = get_openapi(
        title=app.title,
        version=app.version,
        openapi_version="3.1.0",
        description=app.description,
        routes=app.routes,
    )
    components = document.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    components["securitySchemes"] = _SECURITY
    known = {(method, route.path_format): route for route in routes for method in route.methods or ()}
    told = {place: answer for place, route in known.items() if (answer := getattr(route, "answer", None)) is not None}
    added = added_work()
    found, answered = answer_schemas([*told.values(), Problem, *added.values()])
    schemas |= answered
    for kind, answer in added.items():
        _add_hidden(answered[answer.__name__]["properties"], kind)
        _add_kind(answered, kind, {"$ref": f"#/components/schemas/{answer.__name__}"})
    bodies = dict(zip(told, found, strict=False))
    for path, method, operation in _operations(document):
        route = known.get((method, path))
        _complete(path, method, operation, None if route is None else needed_role(route))
        if (method, path) in bodies:
            _tell(operation["responses"], bodies[method, path])
    return document


def _add_kind(node: Any, kind: str, answer: dict[str, str]) -> None:
    """Wherever work is told, it may also be of this kind, which a package adds."""
    if isinstance(node, list):
        for part in node:
            _add_kind(part, kind, answer)
    elif isinstance(node, dict):
        if "unreadable" in (mapping := node.get("discriminator", {}).get("mapping", {})):
            mapping[kind] = answer["$ref"]
            node["anyOf"].append(answer)
        for part in node.values():
            _add_kind(part, kind, answer)


def _add_hidden(properties: dict[str, Any], kind: str) -> None:
    """Where the stars may stand for what is no text, the schema says so."""
    for one in added_kinds()[kind].fields:
        if may_be_hidden(one) and one.form not in (FieldForm.TEXT, FieldForm.COMMAND):
            properties[one.name] = {"anyOf": [properties[one.name], {"type": "string", "const": HIDDEN}]}


def _tell(responses: dict[str, Any], schema: dict[str, Any]) -> None:
    """Every success has the same form, and a 204 none."""
    for status, response in responses.items():
        if status.startswith("2") and status != "204":
            response["content"] = {"application/json": {"schema": schema}}


def _operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, item in document.get("paths", {}).items():
        for method, operation in item.items():
            yield path, method.upper(), operation


def _complete(path: str, method: str, operation: dict[str, Any], role: Role | None) -> None:
    """Add what every route has in common."""
    answers = operation["responses"]
    if (answers.get("422") or {}).get("content", {}).get("application/json"):
        del answers["422"]  # FastAPI's own form, which nobody gets
    common = [status for status in _EVERYWHERE if path.startswith("/api") or status in (421, 503)]
    if method not in SAFE_METHODS:
        common.append(413)
    if "{" in path:
        common.append(404)
    if method == "POST" and takes_key(path, role):
        operation.setdefault("parameters", []).append(_KEY)
        common.append(409)
    for status, answer in problems(*common).items():
        answers.setdefault(str(status), answer)
    operation["responses"] = dict(sorted(answers.items()))
    if path.startswith("/api/") and (method, path) not in OPEN_PATHS:
        operation["security"] = [{"token": []}, {"login": [], "origin": []}]
    if role is not None:
        operation["x-role"] = str(role)
