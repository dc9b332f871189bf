"""What the house asks of a database about who may and who did: a part of base.py, answered in each access.py."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ostinato.clock import Micros
from ostinato.models.access import Actor, Answer, AuditEntry, AuditFilter, Browser, Login, NewLogin, NewToken, Token

__all__ = ["AccessCounts", "AccessStore"]


@dataclass(frozen=True, slots=True)
class AccessCounts:
    """How many can get in."""

    tokens: int
    logins: int


class AccessStore(Protocol):
    """Tokens, logins and codes by the hash of their secret; the audit log; answers to repeated requests."""

    async def put_token(self, token: NewToken, now: Micros) -> Token | None:
        """Store a token; None if the name is taken."""
        ...

    async def list_tokens(self) -> list[Token]: ...

    async def remove_token(self, id: int) -> bool:
        """Delete a token and the logins that were made with it."""
        ...

    async def find_token(self, hash: str, now: Micros) -> Token | None:
        """The token of this hash, unless it has expired. Notes its use, at most once a minute."""
        ...

    async def put_code(self, code: NewLogin, now: Micros) -> None: ...

    async def take_code(self, hash: str, now: Micros) -> Login | None:
        """Use a code up: it is answered once, and only before it expires."""
        ...

    async def put_login(self, login: NewLogin, now: Micros) -> None: ...

    async def find_login(self, hash: str, now: Micros) -> Login | None:
        """The login of this hash, unless it has expired. Notes its use, at most once a minute."""
        ...

    async def list_logins(self, now: Micros) -> list[Browser]:
        """Those that are in force, the newest first."""
        ...

    async def remove_login(self, hash: str) -> str | None:
        """End the login of this hash; answers whose it was."""
        ...

    async def remove_logins(self, *, id: int | None = None, who: str | None = None) -> list[str]:
        """End the login of this id, all of somebody, or all there are, with their unused codes; answers whose each was.
        One id ends no code."""
        ...

    async def count_access(self, now: Micros) -> AccessCounts:
        """How many tokens and logins are in force."""
        ...

    async def note_audit(self, actor: Actor, verb: str, object: str, detail: str, now: Micros) -> None:
        """Append to the audit log; `detail` is a JSON object."""
        ...

    async def list_audit(self, wanted: AuditFilter) -> list[AuditEntry]: ...

    async def begin_request(self, who: str, key: str, fingerprint: str, now: Micros) -> Answer | None:
        """Take a key for a request; the answer that is there already if somebody took it in the last day.

        The same request may take it from one that has had no answer for minutes, whose process must be gone.
        """
        ...

    async def end_request(self, who: str, key: str, begun_at: Micros, answer: Answer | None) -> None:
        """Keep the answer for this key; None gives the key back. Nothing happens if another took it meanwhile."""
        ...
