"""The whole OpenAPI document against the server: whatever is sent gets an answer that the document names.

schemathesis makes requests from the document, right ones and wrong ones; half of them name objects that exist, so that
they come past "not found". No engine runs: nothing of what it makes up is executed.
"""

from __future__ import annotations

import copy
import shutil
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, assume, settings
from schemathesis import APIOperation, Case
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from ostinato.execution.registry import Registry
from tests.doors.good_requests import GOOD, KNOWN, furnish
from tests.doors.web import BASE, Client, web_on
from tests.openapi_document import DOCUMENT

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
EXAMPLES = 10
LONGEST_URL = 65_536
"""Longer ones httpx does not send."""

schema = schemathesis.openapi.from_dict(copy.deepcopy(DOCUMENT))
schema.config.generation.update(max_examples=EXAMPLES, deterministic=True, with_security_parameters=False)
operations = [found.ok() for found in schema.get_all_operations() if isinstance(found, Ok)]


def hello(*_: Any, **__: Any) -> None:
    return None


def answer(payloads: list[Any]) -> int:
    return len(payloads)


def registered() -> Registry:
    registry = Registry()
    registry.add_task("hello", hello, {})
    registry.add_task("answer", answer, {})
    return registry


@pytest.fixture(scope="module")
def furnished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A database with one of everything, and the token of its admin."""
    folder = tmp_path_factory.mktemp("furnished")
    with web_on(registered(), f"sqlite:///{folder / 'ostinato.db'}") as web:
        return folder / "ostinato.db", furnish(web, folder)


@pytest.fixture
def served(furnished: tuple[Path, str], tmp_path: Path) -> Iterator[Client]:
    """The admin of a server on a database of its own, with one of everything."""
    database, token = furnished
    shutil.copy(database, tmp_path)
    with web_on(registered(), f"sqlite:///{tmp_path / 'ostinato.db'}") as web:
        web.clock.move_to("2026-04-01T00:00:00Z")
        yield web.anybody(Authorization=f"Bearer {token}")


@schema.parametrize()
@settings(deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), max_examples=EXAMPLES)
def test_every_answer_is_one_that_the_document_names(case: Case[Any], served: Client) -> None:
    lead_to_what_exists(case)
    case.validate_response(carried(served, case), checks=CHECKS)


def carried(client: Client, case: Case[Any]) -> httpx.Response:
    """Send what schemathesis made, byte for byte as `requests` would."""
    made = requests.Request(**case.as_transport_kwargs(base_url=BASE)).prepare()
    assert made.method is not None
    assert made.url is not None
    assume(len(made.url) <= LONGEST_URL)
    body = made.body.encode() if isinstance(made.body, str) else made.body
    headers = [(name.encode("latin-1"), _bytes(value)) for name, value in made.headers.items()]
    return client.send(made.method, made.url, headers=headers, content=body)


def _bytes(value: str | bytes) -> bytes:
    return value.encode("latin-1") if isinstance(value, str) else value


def lead_to_what_exists(case: Case[Any]) -> None:
    """For half of the requests, so that they come past "not found". Which half follows from what they carry."""
    content = repr((case.query, case.body, case.path_parameters)).encode()
    if case.path_parameters and zlib.crc32(content) % 2:
        case.path_parameters = known_to(case.operation)


def known_to(operation: APIOperation[Any, Any, Any, Any]) -> dict[str, Any]:
    return next((dict(values) for path, values in KNOWN.items() if operation.path.startswith(path)), {})


@pytest.mark.parametrize("operation", operations, ids=lambda operation: operation.label)
def test_every_operation_grants_a_good_request(
    operation: APIOperation[Any, Any, Any, Any], served: Client, furnished: tuple[Path, str]
) -> None:
    assert operation.label in GOOD, (
        f"{operation.label} is new: write a request for it into tests/doors/good_requests.py"
    )
    good = GOOD[operation.label]
    body = {"token": furnished[1]} if operation.label == "POST /api/login" else good.json
    sent: dict[str, Any] = {} if body is None else {"json": body}
    response = served.send(operation.method, good.path, params=good.query, headers=good.headers, **sent)
    assert response.status_code == good.status, response.text
    case = operation.Case(path_parameters=known_to(operation))
    case.validate_response(response, checks=CHECKS)
    if "json" in response.headers.get("content-type", ""):
        told = DOCUMENT["paths"][operation.path][operation.method.lower()]["responses"][str(good.status)]
        assert list(undescribed(response.json(), told["content"]["application/json"]["schema"])) == []


def undescribed(value: Any, schema: dict[str, Any], path: str = "") -> Iterator[str]:
    """What an answer holds and its schema does not name."""
    if "$ref" in schema:
        schema = DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    forms = [form for form in schema.get("anyOf", ()) if form.get("type") != "null"]
    if forms and value is not None:
        # Of several forms it is enough to be one.
        yield from min((list(undescribed(value, form, path)) for form in forms), key=len)
    for number, item in enumerate(value if isinstance(value, list) else ()):
        yield from undescribed(item, schema.get("items", {}), f"{path}[{number}]")
    for name, inner in value.items() if isinstance(value, dict) and "properties" in schema else ():
        if name in schema["properties"]:
            yield from undescribed(inner, schema["properties"][name], f"{path}.{name}")
        else:
            yield f"{path}.{name}"


def test_every_good_request_is_for_an_operation_that_exists() -> None:
    assert set(GOOD) == {operation.label for operation in operations}
