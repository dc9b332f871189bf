"""The document says of answers what their classes say: each is described once, and nothing of that is lost."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ostinato.api.app import api_routes
from ostinato.models.states import RunState
from tests.openapi_document import DOCUMENT

SCHEMAS: dict[str, dict[str, Any]] = DOCUMENT["components"]["schemas"]
ROUTES = Path(__file__).parents[2] / "src" / "ostinato" / "api" / "routes"


def _references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        yield from [node["$ref"].rpartition("/")[2]] if "$ref" in node else []
        for part in node.values():
            yield from _references(part)
    for part in node if isinstance(node, list) else ():
        yield from _references(part)


def test_every_schema_is_there_is_used_and_says_what_it_is() -> None:
    assert set(_references(DOCUMENT)) == set(SCHEMAS)
    assert [name for name, schema in SCHEMAS.items() if not schema.get("description")] == []
    assert [name for name, schema in SCHEMAS.items() if schema["title"] != name] == []
    assert [name for name in SCHEMAS if not re.fullmatch(r"[A-Z][A-Za-z]+", name)] == []


@pytest.mark.parametrize(
    ("name", "field", "words"),
    [
        pytest.param("Schedule", "off_note", "switched off", id="of the model"),
        pytest.param("Schedule", "running", "queued or running", id="of the answer"),
        pytest.param("Run", "zone", "or of the settings", id="told otherwise than by the model"),
        pytest.param("LaneAnswer", "used", "on all nodes", id="of the model of what has a zone beside it"),
        pytest.param("MadeLogin", "version", "The version of the server.", id="inherited"),
        pytest.param("Login", "current", "the login of this request", id="of a model that is told whole"),
        pytest.param("Timeline", "truncated", "more than the limit", id="beside one that has another name in JSON"),
    ],
)
def test_the_text_under_a_field_describes_it(name: str, field: str, words: str) -> None:
    assert words in SCHEMAS[name]["properties"][field]["description"]


def test_times_durations_and_words_are_told_as_they_are_written() -> None:
    run, policy = SCHEMAS["Run"]["properties"], SCHEMAS["Policy"]["properties"]
    assert run["due_at"] == {"type": "string", "format": "date-time"}
    assert {"type": "string", "format": "date-time"} in run["finished_at"]["anyOf"]
    assert SCHEMAS["Preview"]["properties"]["next"]["items"]["format"] == "date-time"
    assert policy["catch_up_window"]["type"] == "string"
    assert "format" not in policy["catch_up_window"], "it is 24h, not P1D"
    assert set(run["state"]["enum"]) == set(RunState)
    assert run["state"]["description"] == RunState.__doc__


def test_only_what_may_be_left_out_is_not_required() -> None:
    answers = _answers()
    assert answers >= {"Run", "Schedule", "Policy", "Attempt", "Progress"}
    optional = {
        f"{name}.{field}"
        for name in answers
        for field in SCHEMAS[name].get("properties", {})
        if field not in SCHEMAS[name].get("required", ())
    }
    assert optional == {
        *("Run.cut", "Run.blocked_by", "RecentRun.cause", "Schedule.recent", "Schedule.blocked_by"),
        *("Problem.errors", "Problem.checks", "Problem.version"),
    }


def _answers() -> set[str]:
    """The schemas that answers are made of."""
    found: set[str] = set()
    for item in DOCUMENT["paths"].values():
        for operation in item.values():
            told = [one for status, one in operation["responses"].items() if status.startswith("2")]
            found.update(_references(told))
    while more := {inner for name in found for inner in _references(SCHEMAS[name])} - found:
        found |= more
    return found


def test_what_routes_answer_is_encoded_in_one_place() -> None:
    """There it is decided what whoever asks may see."""
    assert [path.name for path in ROUTES.glob("*.py") if "json.encode" in path.read_text(encoding="utf-8")] == []
    assert all(hasattr(route, "answer") for route in api_routes() if route.path.startswith("/api/"))
