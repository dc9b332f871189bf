"""/api/tokens: secrets for scripts."""

from __future__ import annotations

from ostinato.api.access import Admin, Container, Served
from ostinato.api.answers import problems
from ostinato.api.segments import Number, routes_of
from ostinato.api.shapes.access import NewToken
from ostinato.models.access import Token
from ostinato.service.answers import Listed, MadeToken

__all__ = ["router"]

router = routes_of("tokens")


@router.get("/api/tokens")
async def list_tokens(services: Served, container: Container, _: Admin) -> Listed[Token]:
    """Every token, without its secret."""
    return Listed([*await services.access.tokens()], container.settings.tz)


@router.post("/api/tokens", status_code=201, responses=problems(409))
async def add_token(body: NewToken, services: Served, container: Container, login: Admin) -> MadeToken:
    """Make a token; its secret is in this answer and nowhere else."""
    made, secret = await services.access.make_token(body.name, body.role, login.who, body.expires)
    return MadeToken.of(made, token=secret, zone=container.settings.tz)


@router.delete("/api/tokens/{id}", status_code=204)
async def remove_token(id: Number, services: Served, _: Admin) -> None:
    """Revoke a token, and the logins that were made with it."""
    await services.access.remove_token(id)
