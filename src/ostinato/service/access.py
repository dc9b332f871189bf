"""Who may: tokens for scripts, one-time codes and logins for browsers. A secret leaves here once; its hash is kept."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from ostinato.clock import Clock, from_micros, micros_of, to_micros
from ostinato.durations import Duration, parse_duration
from ostinato.errors import Conflict, InvalidInput, NotFound, NotLoggedIn
from ostinato.models.access import Actor, Browser, Login, LoginLimits, NewLogin, NewToken, Role, Token
from ostinato.models.policy import check_choice, check_key
from ostinato.service.audit import audited, note
from ostinato.stores.access import AccessCounts
from ostinato.stores.base import Store

__all__ = ["CODE_AGE", "TOKEN_PREFIX", "AccessService", "NewSecrets"]

TOKEN_PREFIX = "ost_"
"""How a token begins, so that people and scanners of leaked secrets know one when they see it."""
CODE_AGE = timedelta(minutes=15)

_BYTES = 32
_LONGEST_SECRET = 200
"""Nobody has made a longer one: it need not be looked up."""


@dataclass(frozen=True, slots=True)
class NewSecrets:
    """What a browser gets when it logs in; neither is enough without the other."""

    cookie: str
    """Browsers send it to every port of the host."""
    origin_key: str
    """The page keeps it where only its own origin (scheme, host and port) can read it."""


class AccessService:
    """Makes and knows secrets."""

    def __init__(self, store: Store, clock: Clock, logins: LoginLimits) -> None:
        self._store = store
        self._clock = clock
        self._lifetime = micros_of(logins.lifetime)
        self._idle_timeout = micros_of(logins.idle_timeout)

    @audited("token.add")
    async def make_token(
        self, name: str, role: Role | str, owner: str, expires: Duration | None = None
    ) -> tuple[Token, str]:
        """A token and its secret, which nobody can read again."""
        check_key(name, "name", "give a name such as ci")
        if name != name.strip():
            raise InvalidInput(f"a token cannot be called {name!r}", field="name", hint="leave out the spaces")
        wanted = check_choice(Role, "role", role)
        now = self._clock.now()
        expires_at = None
        if expires is not None:
            age = micros_of(parse_duration(expires, field="expires"))
            if age == 0:
                raise InvalidInput("a token cannot expire at once", field="expires", hint="give a time such as 90d")
            expires_at = now + age
            if from_micros(expires_at).year == 9999:
                raise InvalidInput(
                    f"expires cannot be {expires!r}", field="expires", hint="leave it out for a token that lasts"
                )
        secret = TOKEN_PREFIX + secrets.token_urlsafe(_BYTES)
        made = await self._store.access.put_token(NewToken(name, wanted, owner, _hash(secret), expires_at), now)
        if made is None:
            raise Conflict(f"a token {name!r} already exists: remove it, or choose another name")
        return made, secret

    async def tokens(self) -> Sequence[Token]:
        """All of them, without their secrets."""
        return await self._store.access.list_tokens()

    @audited("token.remove", about=lambda _, token: token.name)
    async def remove_token(self, id: int) -> Token:
        """Revoke a token, and the logins that were made with it."""
        found = [token for token in await self.tokens() if token.id == id]
        if not found or not await self._store.access.remove_token(id):
            raise NotFound(f"there is no token {id}; 'ostinato token ls' lists them")
        return found[0]

    @audited("login.link", about=lambda given, _: given.pop("who"))
    async def make_code(self, *, who: str, role: Role | str = Role.ADMIN) -> str:
        """A code that can be exchanged for a login once, within 15 minutes."""
        now = self._clock.now()
        code = secrets.token_urlsafe(_BYTES)
        expires_at = now + micros_of(CODE_AGE)
        await self._store.access.put_code(
            NewLogin(_hash(code), check_key(who, "who", "give a name"), check_choice(Role, "role", role), expires_at),
            now,
        )
        return code

    async def login(
        self, *, code: str | None = None, token: str | None = None, address: str | None = None
    ) -> tuple[NewSecrets, Login]:
        """A browser's login for a code or a token: its secrets, and who it is."""
        if (code is None) == (token is None):
            raise InvalidInput("give either code or token", field="code")
        new = NewSecrets(secrets.token_urlsafe(_BYTES), secrets.token_urlsafe(_BYTES))
        if code is not None:
            made = await self._login_by_code(code, new)
        else:
            made = await self._login_by_token(token or "", new)
        detail = {"by": "token" if token is not None else "code", "role": str(made.role)}
        await note(self._store, self._clock, Actor(made.who, "page", address), "login", made.who, detail)
        return new, made

    async def _login_by_code(self, code: str, new: NewSecrets) -> Login:
        now = self._clock.now()
        made = None
        if _may_be_secret(code):
            made = await self._store.access.exchange_code(
                _hash(code), _hash(new.cookie), _hash(new.origin_key), now + self._lifetime, now
            )
        if made is None:
            raise NotLoggedIn(
                "this login link was used already, has expired, or belongs to another database: make another one with "
                "'ostinato login' and the --db or --app of this server"
            )
        return made

    async def _login_by_token(self, token: str, new: NewSecrets) -> Login:
        now = self._clock.now()
        found = await self.who_by_token(token)
        if found is not None:
            expires_at = now + self._lifetime
            if found.expires_at is not None:
                expires_at = min(expires_at, to_micros(found.expires_at))
            # The token may have been removed since it was looked up: then nothing is written.
            login = NewLogin(
                _hash(new.cookie), found.who, found.role, expires_at, found.token_id, _hash(new.origin_key)
            )
            if await self._store.access.put_login(login, now):
                return replace(found, expires_at=from_micros(expires_at))
        raise NotLoggedIn("the token is unknown or has expired; 'ostinato token ls' lists them")

    async def who(self, cookie: str, origin_key: str) -> Login | None:
        """Whose login these two are of."""
        if not _may_be_secret(cookie) or not _may_be_secret(origin_key):
            return None
        now = self._clock.now()
        return await self._store.access.find_login(_hash(cookie), _hash(origin_key), now, now - self._idle_timeout)

    async def who_by_token(self, text: str) -> Login | None:
        """Whose token this is: the token's own name acts, so that the audit log tells them apart."""
        if not text.startswith(TOKEN_PREFIX) or not _may_be_secret(text):
            return None
        token = await self._store.access.find_token(_hash(text), self._clock.now())
        if token is None:
            return None
        return Login(token.name, token.role, token.id, token.used_at, token.expires_at)

    async def logins(self, secret: str | None = None) -> Sequence[Browser]:
        """Every browser that is logged in, the newest first; `secret` is the cookie of the one that asks."""
        now = self._clock.now()
        hash = None if secret is None else _hash(secret)
        return await self._store.access.list_logins(now, now - self._idle_timeout, hash)

    @audited("logout", about=lambda given, who: given.pop("secret") and who)
    async def logout(self, secret: str) -> str | None:
        """End a login; answers whose it was."""
        return await self._store.access.remove_login(_hash(secret))

    @audited("logout", about=lambda _, who: who)
    async def end_login(self, id: int) -> str:
        """End the login of this number; answers whose it was."""
        ended = await self._store.access.remove_logins(id=id)
        if not ended:
            raise NotFound(f"there is no login {id}: it has ended")
        return ended[0]

    @audited("logout", about=lambda given, _: given.pop("who", "everybody"), answers="ended")
    async def end_logins(self, who: str | None = None) -> int:
        """End all logins of somebody, or of everybody, and make their unused links worthless; answers how many."""
        return len(await self._store.access.remove_logins(who=who))

    async def has_tokens(self) -> bool:
        """Whether a token is in force."""
        return (await self._counts()).tokens > 0

    async def has_logins(self) -> bool:
        """Whether a browser is logged in."""
        return (await self._counts()).logins > 0

    async def _counts(self) -> AccessCounts:
        now = self._clock.now()
        return await self._store.access.count_access(now, now - self._idle_timeout)


def _may_be_secret(text: str) -> bool:
    return 0 < len(text) <= _LONGEST_SECRET and text.isascii()


def _hash(secret: str) -> str:
    # The secrets are long and random: a slow hash would add nothing.
    return hashlib.sha256(secret.encode()).hexdigest()
