"""The page on REST names every operation with its role, and `python -m ostinato.api` prints what the server answers."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.doors.web import BASE, Client
from tests.openapi_document import DOCUMENT

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "rest.md"
PATHS: dict[str, dict[str, Any]] = DOCUMENT["paths"]
OPERATIONS = [
    (method.upper(), path, operation)
    for path, item in PATHS.items()
    for method, operation in item.items()
    if path.startswith("/api/") and method != "head"
]


def _said() -> dict[tuple[str, str], str]:
    """The role of each operation that a table names; `/resume` behind a path stands for its last part."""
    found: dict[tuple[str, str], str] = {}
    for row in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in row.split("|")]
        method = path = ""
        for code in re.findall(r"`([^`]+)`", cells[1]) if len(cells) > 3 else ():
            if " " in code:
                method, path = code.split(" ")
            elif not method:
                break  # the table of an answer's fields
            else:
                path = f"{path.rpartition('/')[0]}{code}"
            found[method, path] = cells[2]
    return found


SAID = _said()
IN_PROSE = {"/api/timings/preview", "/api/overview", "/api/timeline", "/api/openapi.json"}


@pytest.mark.parametrize(("method", "path", "operation"), OPERATIONS, ids=lambda value: str(value)[:40])
def test_the_page_names_every_operation_and_its_role(method: str, path: str, operation: dict[str, Any]) -> None:
    if path in IN_PROSE:
        assert f"{path}`" in PAGE.read_text(encoding="utf-8")
    else:
        assert SAID[method, path] == operation.get("x-role", "")


def test_the_page_names_no_operation_that_is_not_there() -> None:
    assert set(SAID) <= {(method, path) for method, path, _ in OPERATIONS}


@pytest.mark.parametrize(("method", "path", "operation"), OPERATIONS, ids=lambda value: str(value)[:40])
def test_every_parameter_of_a_query_is_on_the_page(method: str, path: str, operation: dict[str, Any]) -> None:
    text = PAGE.read_text(encoding="utf-8")
    given = [one["name"] for one in operation.get("parameters", []) if one["in"] == "query"]
    assert [name for name in given if f"`{name}`" not in text and f"`{name}=" not in text] == []


def test_every_request_on_the_page_is_granted(admin: Client) -> None:
    text = PAGE.read_text(encoding="utf-8").replace("\\\n", " ")
    commands = [shlex.split(line) for line in re.findall(r"^\$ (curl .+)$", text, re.MULTILINE)]
    assert len(commands) >= 3
    for words in commands:
        (path,) = (word.removeprefix(BASE) for word in words if word.startswith(BASE))
        body = json.loads(words[words.index("--json") + 1]) if "--json" in words else None
        answer = admin.send("GET" if body is None and "POST" not in words else "POST", path, json=body)
        assert answer.is_success, f"{words}: {answer.text}"


def test_every_kind_of_work_on_the_page_is_taken(admin: Client) -> None:
    (sample,) = re.findall(r"^```json\n(\[.+?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    for number, work in enumerate(json.loads(sample)):
        answer = admin.post("/api/schedules", {"name": f"{work['kind']}-{number}", "timing": "every 5m", "work": work})
        assert answer.status_code == 201, answer.text


@pytest.mark.parametrize(("method", "path", "operation"), OPERATIONS, ids=lambda value: str(value)[:40])
def test_beside_every_time_of_an_answer_stands_its_zone(method: str, path: str, operation: dict[str, Any]) -> None:
    if path == "/api/runs/{id}/lines":
        return  # The run has it.
    for status, answer in operation["responses"].items():
        for media in answer.get("content", {}).values() if status.startswith("2") else ():
            assert list(_times_without_zone(media["schema"])) == []


def _times_without_zone(schema: dict[str, Any], path: str = "") -> Iterator[str]:
    """The times of an answer that have no zone in their object or around it."""
    if "$ref" in schema:
        schema = DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    if schema.get("format") == "date-time":
        yield path
    fields = schema.get("properties", {})
    for name, inner in fields.items() if "zone" not in fields else ():
        yield from _times_without_zone(inner, f"{path}.{name}")
    for inner in (*schema.get("anyOf", ()), *([schema["items"]] if "items" in schema else ())):
        yield from _times_without_zone(inner, path)


def test_every_operation_has_a_name_of_its_own_and_a_tag() -> None:
    names = [operation["operationId"] for _, _, operation in OPERATIONS]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z_]+", name) for name in names)
    assert all(operation["tags"] for _, _, operation in OPERATIONS)
