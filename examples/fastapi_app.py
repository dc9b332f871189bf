# fastapi_app.py: uvicorn fastapi_app:api
import os
import secrets
from urllib.parse import parse_qs

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from starlette.requests import HTTPConnection

from ostinato import Every, Identity, Ostinato

jobs = Ostinato("sqlite:///fastapi.db")
people: dict[str, Identity] = {}  # who is logged in, by the session's cookie


@jobs.task("refresh", schedule=Every(minutes=5))
async def refresh() -> str:
    return "fresh"


@jobs.task
def send_mail(to: str) -> str:
    return f"sent to {to}"


def who(request: HTTPConnection) -> Identity | None:
    return people.get(request.cookies.get("session", ""))


api = FastAPI(lifespan=jobs.lifespan())
api.mount("/jobs", jobs.asgi(who, login_url="/login?next={next}"))


@api.post("/signup")
async def signup(to: str) -> dict[str, int]:
    return {"run": await send_mail.aio.enqueue(to)}


@api.get("/runs/{number}")
async def show(number: int) -> dict[str, object]:
    run = await jobs.aio.runs.get(number)
    return {"state": run.state, "result": run.result}


@api.get("/login")
async def form() -> HTMLResponse:
    return HTMLResponse('<form method="post"><input name="password" type="password"><button>Log in</button></form>')


@api.post("/login")
async def log_in(request: Request, next: str = "/jobs/") -> Response:
    given = parse_qs((await request.body()).decode()).get("password", [""])[0]
    if not secrets.compare_digest(given.encode(), os.environ["SHOP_PASSWORD"].encode()):
        return HTMLResponse("wrong password", 403)
    answer = RedirectResponse(next if next.startswith("/jobs/") else "/jobs/", 303)
    session = secrets.token_urlsafe()
    people[session] = Identity("ada", "admin")
    answer.set_cookie("session", session, httponly=True, samesite="lax")
    return answer
