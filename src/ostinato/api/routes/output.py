"""/api/runs/{id}/output and /lines: what a run printed, as a text of which a part can be asked for, and as lines."""

from __future__ import annotations

import asyncio
import re
from typing import Annotated, Any

from fastapi import Header, Query
from starlette.responses import Response

from ostinato.api.access import Served, Viewer
from ostinato.api.answers import json_answer, problems
from ostinato.api.problems import problem, problem_answer
from ostinato.api.segments import Number, routes_of
from ostinato.api.shapes.base import GREATEST
from ostinato.plurals import counted
from ostinato.service.answers import Lines, line_answer
from ostinato.service.runs import LinesPage

__all__ = ["router"]

router = routes_of("runs")

_TEXT = {"content": {"text/plain": {"schema": {"type": "string"}}}}
_RANGE = re.compile(r"\s*bytes\s*=\s*(\d{0,15})\s*-\s*(\d{0,15})\s*", re.IGNORECASE)


async def read_output(
    id: Number,
    services: Served,
    _: Viewer,
    stamps: Annotated[bool, Query(description="Start each line with its time.")] = False,
    range: Annotated[str | None, Header(description="One range of bytes, such as bytes=0-999 or bytes=-1000.")] = None,
) -> Response:
    """What the run has printed so far."""
    body = (await services.runs.output(id, stamps=stamps)).encode()
    headers = {"Accept-Ranges": "bytes"}
    wanted = None if range is None else _RANGE.fullmatch(range)
    if wanted is None or not (wanted[1] or wanted[2]):
        # Several ranges, or none that can be read: the whole is a right answer too.
        return Response(body, headers=headers, media_type="text/plain")
    first, last = _bounds(wanted[1], wanted[2], len(body))
    if first > last:
        shape = problem(416, "range-not-satisfiable", f"the output has {counted(len(body), 'byte')}")
        return problem_answer(shape, {**headers, "Content-Range": f"bytes */{len(body)}"})
    headers["Content-Range"] = f"bytes {first}-{last}/{len(body)}"
    return Response(body[first : last + 1], 206, headers, "text/plain")


_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: _TEXT,
    206: {"description": "The requested part", **_TEXT},
    **problems(416),
}
_PATH = "/api/runs/{id}/output"
router.get(_PATH, name="get_output", responses=_ANSWERS)(read_output)
router.head(_PATH, name="head_output", responses=_ANSWERS)(read_output)


def _bounds(first: str, last: str, length: int) -> tuple[int, int]:
    """The first and the last byte; the first is the greater one if there is none."""
    if not first:
        return (max(0, length - int(last)), length - 1) if int(last) else (1, 0)
    return int(first), min(int(last), length - 1) if last else length - 1


@router.get("/api/runs/{id}/lines")
async def list_lines(
    id: Number,
    services: Served,
    _: Viewer,
    after: Annotated[int, Query(ge=0, le=GREATEST, description="Only lines with a greater number.")] = 0,
    limit: Annotated[
        int, Query(ge=1, le=5000, description="How many lines at most; a few more where lines were cut.")
    ] = 1000,
) -> Annotated[Response, Lines]:
    """Its lines; ask again with the last number for more, and to follow it."""
    page = await services.runs.page_of_lines(id, after=after, limit=limit)
    return await asyncio.to_thread(_lines_answer, page)


def _lines_answer(page: LinesPage) -> Response:
    return json_answer(Lines.of(page, lines=[line_answer(line) for line in page.lines]))
