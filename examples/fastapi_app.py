# fastapi_app.py: SHOP_PASSWORD="open sesame" uvicorn fastapi_app:api --workers 2
import hashlib
import hmac
import os
from urllib.parse import parse_qs

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.requests import HTTPConnection

from ostinato import Every, Identity, NotFound, Ostinato

jobs = Ostinato("sqlite:///fastapi.db")
password = os.environ.get("SHOP_PASSWORD", "").encode()  # without one, nobody can log in


@jobs.task("refresh", schedule=Every(minutes=5))
async def refresh() -> str:
    return "fresh"


@jobs.task
def send_mail(to: str) -> str:
    return f"sent to {to}"


def session_of(name: str) -> str:
    """The cookie of somebody who is logged in: signed, so that each worker knows it."""
    return f"{name}:{hmac.new(hashlib.sha256(password).digest(), name.encode(), 'sha256').hexdigest()}"


def who(request: HTTPConnection) -> Identity | None:
    session = request.cookies.get("session", "")
    name = session.partition(":")[0]
    is_ours = hmac.compare_digest(session.encode(), session_of(name).encode())
    return Identity(name, "admin") if name and password and is_ours else None


api = FastAPI(lifespan=jobs.lifespan())
api.mount("/jobs", jobs.asgi(who, login_url="/login?next={next}"))


@api.post("/signup")
async def signup(to: str) -> dict[str, int]:
    return {"run": await send_mail.aio.enqueue(to)}


@api.get("/runs/{number}")
async def show(number: int) -> dict[str, object]:
    run = await jobs.aio.runs.get(number)
    return {"state": run.state, "result": run.result}


@api.exception_handler(NotFound)
async def not_found(_: Request, error: Exception) -> JSONResponse:
    return JSONResponse({"detail": str(error)}, 404)


@api.get("/login")
async def form() -> HTMLResponse:
    return HTMLResponse('<form method="post"><input name="password" type="password"><button>Log in</button></form>')


@api.post("/login")
async def log_in(request: Request, next: str = "/jobs/") -> Response:
    given = parse_qs((await request.body()).decode()).get("password", [""])[0]
    if not password or not hmac.compare_digest(given.encode(), password):
        return HTMLResponse("wrong password" if password else "set SHOP_PASSWORD first", 403)
    answer = RedirectResponse(next if next.startswith("/jobs/") else "/jobs/", 303)
    answer.set_cookie("session", session_of("ada"), httponly=True, samesite="lax")
    return answer
