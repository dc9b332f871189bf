# litestar_app.py: uvicorn litestar_app:site
from typing import Any

from litestar import Litestar, Request, asgi, post

from ostinato import Every, Ostinato

jobs = Ostinato("sqlite:///litestar.db")


@jobs.task("refresh", schedule=Every(minutes=5))
async def refresh() -> str:
    return "fresh"


@jobs.task
def send_mail(to: str) -> str:
    return f"sent to {to}"


@post("/signup")
async def signup(request: Request[Any, Any, Any]) -> dict[str, int]:
    return {"run": await send_mail.aio.enqueue(request.query_params["to"])}


page = asgi("/jobs", is_mount=True, copy_scope=True)(jobs.asgi())
site = Litestar([signup, page], lifespan=[jobs.lifespan()])
