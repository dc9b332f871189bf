"""/api/tokens: secrets for scripts."""

from __future__ import annotations

from starlette.responses import Response

from ostinato.api.access import Admin, House, Served
from ostinato.api.answers import empty_answer, json_answer, problems, zoned
from ostinato.api.segments import Number, routes_of
from ostinato.api.shapes.access import MadeToken, NewToken, TokenList
from ostinato.service.shapes import token_shape

__all__ = ["router"]

router = routes_of("tokens")


@router.get("/api/tokens", response_model=None, responses={200: {"model": TokenList}})
async def list_tokens(services: Served, house: House, _: Admin) -> Response:
    """Every token, without its secret."""
    items = [token_shape(token) for token in await services.access.tokens()]
    return json_answer(zoned({"items": items}, house.settings.tz))


@router.post(
    "/api/tokens", status_code=201, response_model=None, responses={201: {"model": MadeToken}, **problems(409)}
)
async def add_token(body: NewToken, services: Served, house: House, login: Admin) -> Response:
    """Make a token; its secret is in this answer and nowhere else."""
    made, secret = await services.access.make_token(body.name, body.role, login.who, body.expires)
    return json_answer(zoned({**token_shape(made), "token": secret}, house.settings.tz), 201)


@router.delete("/api/tokens/{id}", status_code=204, response_model=None, responses=problems(404))
async def remove_token(id: Number, services: Served, _: Admin) -> Response:
    """Make a token worthless, and the logins that were made with it."""
    await services.access.remove_token(id)
    return empty_answer()
