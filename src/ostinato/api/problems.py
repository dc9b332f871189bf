"""What went wrong, as RFC 9457 problem+json: every error has its status, and none shows internals."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import msgspec
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from msgspec import UNSET, Meta, Struct, UnsetType
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ostinato.api.fields import PART, dotted
from ostinato.errors import (
    ChecksFailed,
    Conflict,
    Draining,
    IllegalTransition,
    InvalidInput,
    LoginUnavailable,
    NoResult,
    NotAllowed,
    NotFound,
    NotLoadable,
    NotLoggedIn,
    NotRunning,
    OstinatoError,
    OutcomeUnknown,
    SchemaTooNew,
    StoreUnavailable,
    TimingError,
    TooManyAttempts,
    VersionConflict,
    WaitTimeout,
)
from ostinato.logs import get_logger
from ostinato.models.write_tracking import may_have_written

__all__ = [
    "MOST_ERRORS",
    "PROBLEM_JSON",
    "BodyTooLarge",
    "FieldProblem",
    "Problem",
    "Unexpected",
    "add_problem_handlers",
    "body_too_large",
    "error_answer",
    "outcome_unknown",
    "problem",
    "problem_answer",
    "problem_of",
]

log = get_logger("ostinato.api")

PROBLEM_JSON = "application/problem+json"
MOST_ERRORS = 20
"""Errors of one request that are told; the rest is counted."""
LONGEST_DETAIL, LONGEST_ERROR, LONGEST_FIELD = 4_000, 500, 200
"""Characters. What somebody sent comes back in part only: an error must not be as large as what caused it."""

_STATUSES: Sequence[tuple[type[OstinatoError], int]] = (
    (InvalidInput, 422),
    (TimingError, 422),
    (NotFound, 404),
    (Draining, 503),
    (Conflict, 409),
    (NotLoggedIn, 401),
    (NotAllowed, 403),
    (LoginUnavailable, 503),
    (TooManyAttempts, 429),
    (NoResult, 409),
    (IllegalTransition, 409),
    (NotLoadable, 409),
    (NotRunning, 409),
    (OutcomeUnknown, 500),
    (StoreUnavailable, 503),
    (SchemaTooNew, 503),
    (WaitTimeout, 503),
)
"""The first that fits; anything else is a 500 that says nothing."""

_SAYS_NOTHING = "this should not happen; see the server's log"
_UNKNOWN = (
    "it was begun and may be incomplete: check what was done before you send it again, and then use a new "
    "Idempotency-Key"
)
_WITHHELD: Sequence[tuple[type[OstinatoError], str]] = (
    (OutcomeUnknown, _UNKNOWN),
    (StoreUnavailable, "the database cannot be reached right now; see the server's log"),
    (SchemaTooNew, "the database is newer than this server: upgrade the server; its log says more"),
)
"""What is told instead of what the database said, which may name hosts and users: the log has it."""
_PHRASES = {
    404: ("not-found", "there is nothing at this address"),
    405: ("method-not-allowed", "this address does not support this method"),
}


_WORDS = {
    "missing": "it is missing",
    "int_type": "give a whole number",
    "int_parsing": "give a whole number",
    "int_from_float": "give a whole number",
    "int_parsing_size": "this number is too large",
    "float_type": "give a number",
    "float_parsing": "give a number",
    "finite_number": "give a number",
    "greater_than": "give more than {gt}",
    "greater_than_equal": "give {ge} or more",
    "less_than": "give less than {lt}",
    "less_than_equal": "give {le} at most",
    "bool_type": "give true or false",
    "bool_parsing": "give true or false",
    "string_type": "give text",
    "string_too_short": "give at least {min_length} characters",
    "string_pattern_mismatch": "it must match {pattern}",
    "list_type": "give a list",
    "dict_type": "give an object",
    "literal_error": "give one of {expected}",
    "extra_forbidden": "there is no such field",
    "model_attributes_type": "it must be an object",
    "too_short": "give at least {min_length}",
    "too_long": "give {max_length} at most",
    "string_too_long": "it may have at most {max_length} characters",
    "union_tag_invalid": "{discriminator} is one of {expected_tags}",
    "union_tag_not_found": "it needs {discriminator}",
}
"""The findings of pydantic that people meet, in our words."""


class FieldProblem(Struct):
    """What is wrong with one field."""

    field: str
    """A dotted path, such as policy.retry.max"""
    message: str
    hint: str | None
    """An example of a valid value"""
    position: int | None
    """Its position in the text of a timing"""


class Problem(Struct):
    """What went wrong (RFC 9457)."""

    type: Annotated[str, Meta(examples=["/problems/not-found"])]
    title: Annotated[str, Meta(examples=["Not found"])]
    status: Annotated[int, Meta(examples=[404])]
    detail: Annotated[str, Meta(examples=["there is no schedule 'x'; 'ostinato schedule ls' lists them"])]
    errors: list[FieldProblem] | UnsetType = UNSET
    """What is wrong with which field"""
    checks: dict[str, str] | UnsetType | None = UNSET
    """Each failed check and why"""
    version: int | UnsetType | None = UNSET
    """The version that the row has now"""


def problem(status: int, name: str, detail: str, **more: Any) -> dict[str, Any]:
    """A problem as JSON; `name` is in kebab-case."""
    title = name.replace("-", " ").capitalize()
    told = _cut(detail, LONGEST_DETAIL)
    return {"type": f"/problems/{name}", "title": title, "status": status, "detail": told, "errors": [], **more}


def _cut(text: str, longest: int) -> str:
    """The beginning and the end of it, which may say how much there is."""
    half = longest // 2
    return text if len(text) <= longest else f"{text[: half - 1]}…{text[-half:]}"


def problem_of(error: OstinatoError, *, is_conditional: bool = False) -> dict[str, Any]:
    """What an error looks like; a version conflict is 412 if the request had a condition."""
    status = next((status for kind, status in _STATUSES if isinstance(error, kind)), None)
    if status is None:
        return problem(500, "internal-error", _SAYS_NOTHING)
    shape = problem(status, _kebab(type(error).__name__), _detail(error))
    match error:
        case TimingError():
            shape["detail"] = _cut(error.message, LONGEST_DETAIL)
            shape["errors"] = [_of_ostinato(error)]
        case InvalidInput() if error.field:
            shape["errors"] = [_of_ostinato(error)]
        case ChecksFailed():
            shape["checks"] = error.failures
        case VersionConflict():
            shape["status"] = 412 if is_conditional else status
            shape["version"] = error.version
    return shape


def _detail(error: OstinatoError) -> str:
    for kind, told in _WITHHELD:
        if isinstance(error, kind):
            log.warning("the database: %s", error)
            return told
    return str(error)


def outcome_unknown() -> dict[str, Any]:
    """What is told of a request that was begun and did not come to its end."""
    return problem(500, "outcome-unknown", _UNKNOWN)


def _of_ostinato(error: TimingError | InvalidInput) -> dict[str, Any]:
    if isinstance(error, TimingError):
        return _field(error.field, error.message, error.hint, error.position)
    return _field(error.field, str(error).removesuffix(f"; {error.hint}") if error.hint else str(error), error.hint)


def _field(field: str, message: str, hint: str, position: int | None = None) -> dict[str, Any]:
    field, message = _cut(field, LONGEST_FIELD), _cut(message, LONGEST_ERROR)
    return {"field": field, "message": message, "hint": _cut(hint, LONGEST_ERROR) or None, "position": position}


def _kebab(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower()


def problem_answer(shape: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> Response:
    """The response that carries a problem."""
    return Response(msgspec.json.encode(shape), shape["status"], headers, PROBLEM_JSON)


def error_answer(error: OstinatoError, *, is_conditional: bool = False) -> Response:
    """The response to an error."""
    shape = problem_of(error, is_conditional=is_conditional)
    headers = {}
    if isinstance(error, NotLoggedIn):
        headers["WWW-Authenticate"] = "Bearer"
    elif isinstance(error, TooManyAttempts):
        headers["Retry-After"] = str(error.retry_after)
    elif shape["status"] >= 500 and may_have_written():
        # To send it again would do it again.
        log.error("a request was begun and could not be completed", exc_info=error)
        shape = outcome_unknown()
    elif shape["status"] == 503:
        headers["Retry-After"] = "1"
    elif shape["status"] == 500:
        log.error("unexpected error", exc_info=error)
    return problem_answer(shape, headers)


def add_problem_handlers(app: FastAPI) -> None:
    """Let every error of a route become a problem."""
    app.add_exception_handler(OstinatoError, _ostinato_error)
    app.add_exception_handler(RequestValidationError, _wrong_request)
    app.add_exception_handler(HTTPException, _http_error)


async def _ostinato_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, OstinatoError)
    conditional = "if-match" in request.headers or "if-none-match" in request.headers
    return error_answer(error, is_conditional=conditional)


async def _wrong_request(_: Request, error: Exception) -> Response:
    """Everything that is wrong with a request, together; what a model refuses alone is told as anywhere else."""
    assert isinstance(error, RequestValidationError)
    found = error.errors()
    if len(found) == 1 and (refusal := _refusal(found[0])) is not None:
        return error_answer(refusal)
    errors = [_of_pydantic(one) for one in found[:MOST_ERRORS]]
    listed = [f"{one['field']}: {one['message']}" if one["field"] else one["message"] for one in errors]
    if len(found) > MOST_ERRORS:
        listed.append(f"and {len(found) - MOST_ERRORS} more")
    return problem_answer(problem(422, "invalid-input", "; ".join(listed)) | {"errors": errors})


def _refusal(one: Mapping[str, Any]) -> TimingError | InvalidInput | None:
    """What a model said, if it was one that did not take a field."""
    context = one.get("ctx", {})
    if one["type"] == PART:
        return InvalidInput(context["said"], field=dotted(one["loc"]), hint=context["hint"])
    said = context.get("error")
    return said if isinstance(said, (TimingError, InvalidInput)) else None


def _of_pydantic(one: Mapping[str, Any]) -> dict[str, Any]:
    """One finding of pydantic, in our form: `("body", "policy", "retry")` is `policy.retry`."""
    if one["type"] == "json_invalid":
        return _field("", f"the body is not valid JSON: {one['ctx']['error']}", "", int(one["loc"][-1]))
    if one["loc"] == ("body",) and not one["type"].startswith("too_many_"):
        return _field("", "the body is not a JSON object", "send one with Content-Type: application/json")
    if (refusal := _refusal(one)) is not None:
        return _of_ostinato(refusal)
    context = one.get("ctx", {})
    words = _WORDS.get(one["type"])
    message = str(one["msg"]) if words is None else words.format(**context)  # a message of pydantic may hold braces
    if one["type"] in ("too_short", "string_too_short") and context.get("min_length") == 1:
        message = "it is empty"
    return _field(dotted(one["loc"]), message, "")


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        # The framework names the methods of the first route at this address alone.
        known = {method for route in request.app.state.routes for method in _methods_at(route, request.scope)}
        error.headers = {**(error.headers or {}), "Allow": ", ".join(sorted(known))} if known else error.headers
    return http_error_answer(error)


def _methods_at(route: Route, scope: Scope) -> set[str]:
    return set() if route.matches(scope)[0] is Match.NONE else route.methods or set()


def http_error_answer(error: HTTPException) -> Response:
    """The response to what the framework refuses."""
    if error.status_code == 400:
        # FastAPI's answer to a body that it cannot read at all.
        return problem_answer(problem(422, "invalid-input", "the body cannot be read: send JSON in UTF-8"))
    if isinstance(error, BodyTooLarge):
        return body_too_large(error.most)
    name, detail = _PHRASES.get(error.status_code, (_kebab_words(error.detail), error.detail))
    return problem_answer(problem(error.status_code, name, detail), error.headers)


class BodyTooLarge(HTTPException):
    """More came than may; raised while it is read."""

    def __init__(self, most: int) -> None:
        super().__init__(413)
        self.most = most


def body_too_large(most: int) -> Response:
    """The answer to such a body. The rest of it is not read: the connection ends."""
    words = "1 MB" if most == 1_000_000 else f"{most} bytes"
    return problem_answer(problem(413, "body-too-large", f"the body is larger than {words}"), {"Connection": "close"})


def _kebab_words(text: str) -> str:
    return "-".join(re.findall(r"[a-z0-9]+", text.lower())) or "error"


class Unexpected:
    """The last net, around all that stands before the routes: what nobody expected becomes a 500 that says nothing,
    with the traceback in the log."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        has_begun = False

        async def watched(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except Exception as error:
            if has_begun:
                raise  # too late for an answer: the server cuts the connection
            await self._answer(scope, error)(scope, receive, send)

    def _answer(self, scope: Scope, error: Exception) -> Response:
        if isinstance(error, OstinatoError):
            return error_answer(error)
        if isinstance(error, HTTPException):
            return http_error_answer(error)
        log.error("unexpected error in %s %s", scope["method"], scope["path"], exc_info=error)
        return problem_answer(problem(500, "internal-error", _SAYS_NOTHING))
