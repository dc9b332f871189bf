"""Every error as a problem: its status, its name, its fields, and nothing that is nobody's business."""

from __future__ import annotations

import inspect

import msgspec
import pytest

from ostinato import errors
from ostinato.api.problems import Problem, problem_of
from ostinato.errors import OstinatoError

STATUSES = {
    "Abort": 500,
    "AlreadyActive": 409,
    "ChecksFailed": 409,
    "Conflict": 409,
    "Draining": 503,
    "IllegalTransition": 409,
    "InvalidInput": 422,
    "LaneCleared": 409,
    "MessageStale": 409,
    "NotAllowed": 403,
    "NoResult": 409,
    "NoDatabase": 404,
    "NotExecuted": 409,
    "RunCancelled": 409,
    "RunFailed": 409,
    "NotFound": 404,
    "NotLoadable": 409,
    "NotLoggedIn": 401,
    "NotRunning": 409,
    "OstinatoError": 500,
    "OutcomeUnknown": 500,
    "QueueDropped": 409,
    "QueueFull": 409,
    "SchemaTooNew": 503,
    "Snooze": 500,
    "SoftTimeout": 500,
    "StoreError": 500,
    "StoreUnavailable": 503,
    "TimingError": 422,
    "KeyBusy": 409,
    "LoginUnavailable": 503,
    "TooManyAttempts": 429,
    "VersionConflict": 409,
    "WaitTimeout": 503,
}
SPECIAL: dict[str, OstinatoError] = {
    "ChecksFailed": errors.ChecksFailed("nightly", {"disk": "it is full"}),
    "Snooze": errors.Snooze("5m"),
    "TooManyAttempts": errors.TooManyAttempts("said why", retry_after=3),
}


def _made(name: str) -> OstinatoError:
    made = SPECIAL.get(name) or getattr(errors, name)("said why")
    assert isinstance(made, OstinatoError)
    return made


def test_every_error_is_in_the_table() -> None:
    kinds = {name for name, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, OstinatoError)}
    assert kinds == STATUSES.keys()


@pytest.mark.parametrize("name", STATUSES)
def test_an_error_has_its_status_and_the_form_that_is_described(name: str) -> None:
    shape = problem_of(_made(name))
    assert shape["status"] == STATUSES[name]
    msgspec.convert(shape, Problem)
    if shape["status"] == 500 and name != "OutcomeUnknown":
        assert shape["type"] == "/problems/internal-error"
        assert "said why" not in shape["detail"]
    else:
        words = shape["type"].removeprefix("/problems/").split("-")
        assert "".join(words) == name.lower()
        assert shape["title"] == " ".join(words).capitalize()


@pytest.mark.parametrize("name", ["OutcomeUnknown", "SchemaTooNew", "StoreUnavailable"])
def test_what_the_database_said_is_in_the_log_alone(name: str, caplog: pytest.LogCaptureFixture) -> None:
    shape = problem_of(getattr(errors, name)('connection to server at "10.0.0.7", port 5432 failed'))
    assert "10.0.0.7" not in str(shape)
    assert "10.0.0.7" in caplog.text


def test_a_wrong_field_is_told_with_its_hint() -> None:
    shape = problem_of(errors.InvalidInput("limit cannot be 0", field="policy.retry.max", hint="give 1 or more"))
    assert shape["detail"] == "limit cannot be 0; give 1 or more"
    assert shape["errors"] == [
        {"field": "policy.retry.max", "message": "limit cannot be 0", "hint": "give 1 or more", "position": None}
    ]
    assert problem_of(errors.InvalidInput("there is nothing to do"))["errors"] == []


def test_a_wrong_timing_is_told_with_its_place() -> None:
    shape = problem_of(errors.TimingError("no such unit", text="every 5x", position=7, hint="every 5m"))
    assert shape["detail"] == "no such unit"
    assert shape["errors"] == [{"field": "timing", "message": "no such unit", "hint": "every 5m", "position": 7}]


def test_failed_checks_are_told_one_by_one() -> None:
    assert problem_of(SPECIAL["ChecksFailed"])["checks"] == {"disk": "it is full"}


def test_a_change_in_between_is_412_for_whoever_made_a_condition() -> None:
    changed = errors.VersionConflict("somebody was faster", version=8)
    assert (problem_of(changed)["status"], problem_of(changed)["version"]) == (409, 8)
    assert problem_of(changed, is_conditional=True)["status"] == 412
