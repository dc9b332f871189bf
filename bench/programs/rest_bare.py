"""The peer of `rest`: a bare Starlette route under uvicorn that answers so many bytes as it is asked for."""

from __future__ import annotations

import sys

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

MEMORY = b" " * 16_000_000


async def answer(request: Request) -> Response:
    """So many bytes."""
    return Response(MEMORY[: int(request.query_params["bytes"])], media_type="application/json")


if __name__ == "__main__":
    uvicorn.run(Starlette(routes=[Route("/", answer)]), host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")
