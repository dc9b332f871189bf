"""What the other layers ask of a database about who may and who did: a part of base.py, answered in each access.py."""

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
        """The token of this hash, unless it has expired. Notes its use, at most once a minute; who may come in does not
        hang on whether that can be written."""
        ...

    async def put_code(self, code: NewLogin, now: Micros) -> None: ...

    async def exchange_code(
        self, code: str, hash: str, origin_hash: str, expires_at: Micros, now: Micros
    ) -> Login | None:
        """Use the code of this hash up, and store the login that it gives, in one transaction; None if the code was
        used already, has expired or never was."""
        ...

    async def put_login(self, login: NewLogin, now: Micros) -> bool:
        """Store a login; False if the token that it is made with is gone."""
        ...

    async def find_login(self, hash: str, origin_hash: str, now: Micros, used_since: Micros) -> Login | None:
        """The login of these two hashes, unless it has expired or was not used since then. Notes its use as
        `find_token` does."""
        ...

    async def list_logins(self, now: Micros, used_since: Micros, hash: str | None = None) -> list[Browser]:
        """Those that are in force, the newest first."""
        ...

    async def remove_login(self, hash: str) -> str | None:
        """End the login of this hash; answers whose it was."""
        ...

    async def remove_logins(self, *, id: int | None = None, who: str | None = None) -> list[str]:
        """End the login of this id, all of somebody, or all there are, with their unused codes; answers whose each was.
        One id ends no code."""
        ...

    async def count_access(self, now: Micros, used_since: Micros) -> AccessCounts:
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
