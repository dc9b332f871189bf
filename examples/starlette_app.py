# starlette_app.py: uvicorn starlette_app:site
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Mount, Route

from ostinato import Every, Ostinato

jobs = Ostinato("sqlite:///starlette.db")


@jobs.task("refresh", schedule=Every(minutes=5))
async def refresh() -> str:
    return "fresh"


@jobs.task
def send_mail(to: str) -> str:
    return f"sent to {to}"


async def signup(request: Request) -> JSONResponse:
    return JSONResponse({"run": await send_mail.aio.enqueue(request.query_params["to"]), "shop": request.state.shop})


@asynccontextmanager
async def shop(_: Starlette) -> AsyncIterator[dict[str, str]]:
    """A lifespan of your own: the engine runs inside it."""
    yield {"shop": "open"}


site = Starlette(
    routes=[Route("/signup", signup, methods=["POST"]), Mount("/jobs", jobs.asgi())],
    lifespan=jobs.lifespan(shop),
)
