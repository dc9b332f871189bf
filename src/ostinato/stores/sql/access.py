"""Who may: tokens, codes and logins by the hash of their secret, the audit log, and answers to repeated
requests. Nothing here wakes an engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from ostinato.clock import SECOND, Micros, from_micros
from ostinato.errors import StoreUnavailable
from ostinato.models.access import (
    Actor,
    Answer,
    AuditEntry,
    AuditFilter,
    Browser,
    Login,
    NewLogin,
    NewToken,
    Role,
    Token,
)
from ostinato.stores.access import AccessCounts
from ostinato.stores.rows import load_all, moment
from ostinato.stores.sql.connection import Connection, Database, given, where
from ostinato.stores.token_uses import TokenUses

__all__ = ["AUDIT_COLUMNS", "REMOVED_AFTER_RUN", "REMOVED_SCHEDULE", "REQUEST_KEPT", "Access", "load_audit"]

_TOKEN_COLUMNS = "t.id, t.name, t.role, t.owner, t.created_at, t.used_at, t.expires_at"
_LOGIN_COLUMNS = "l.who, l.role, l.token_id, l.used_at, l.expires_at"
_BROWSER_COLUMNS = "l.id, l.who, l.role, t.name, l.created_at, l.used_at, l.expires_at"
AUDIT_COLUMNS = "id, at, who, door, address, verb, object, detail"
_ANSWER_COLUMNS = "fingerprint, status, headers, body"

REQUEST_KEPT: Micros = 24 * 3_600 * SECOND
"""How long the answer to a request is kept for whoever repeats it."""
_REQUEST_LOST: Micros = 5 * 60 * SECOND
"""A request that has no answer for so long has none any more: its process is gone, and it may be sent again."""
REMOVED_SCHEDULE = "schedule.remove"
"""The verb of the audit log that says that a schedule is gone."""
REMOVED_AFTER_RUN = f"'ostinato', 'engine', '{REMOVED_SCHEDULE}'"
"""Who, door and verb in SQL, for one that its node deleted because it had run (`delete_after_run`)."""

_decode = msgspec.json.Decoder(dict[str, Any]).decode
_decode_headers = msgspec.json.Decoder(dict[str, str]).decode

_IN_FORCE = "(t.expires_at IS NULL OR t.expires_at > :now)"
# The same hash is the same call, whose commit got no answer.
_PUT_TOKEN = f"""
INSERT INTO tokens AS t (name, role, owner, hash, created_at, expires_at)
VALUES (:name, :role, :owner, :hash, :now, :expires_at)
ON CONFLICT (name) DO UPDATE SET hash = excluded.hash WHERE t.hash = excluded.hash
RETURNING {_TOKEN_COLUMNS.replace("t.", "")}
"""
# A login that was made with a token ends with it. One that is idle for too long ends too.
_LOGIN_IN_FORCE = f"l.expires_at > :now AND coalesce(l.used_at, l.created_at) > :used_since AND {_IN_FORCE}"
_FIND_LOGIN = f"""
SELECT {_LOGIN_COLUMNS} FROM logins l LEFT JOIN tokens t ON t.id = l.token_id
WHERE l.hash = :hash AND l.origin_hash = :origin_hash AND {_LOGIN_IN_FORCE}
"""
_LIST_LOGINS = f"""
SELECT {_BROWSER_COLUMNS}, coalesce(l.hash = :hash::text, FALSE) FROM logins l LEFT JOIN tokens t ON t.id = l.token_id
WHERE {_LOGIN_IN_FORCE} ORDER BY l.id DESC
"""
_PUT = """
INSERT INTO {into}) SELECT :hash, :who, :role, :expires_at, {token}, :now{origin} {source}
ON CONFLICT (hash) DO UPDATE SET hash = excluded.hash RETURNING 1
"""
# Of a token that has been removed meanwhile nothing more can be made.
_OF_TOKEN = {"token": "t.id", "source": "FROM tokens t WHERE t.id = :token_id FOR KEY SHARE"}
_OF_NONE = {"token": "NULL::bigint", "source": "WHERE TRUE"}
_COLUMNS = "(hash, who, role, expires_at, token_id, created_at"
_CODE = {"into": f"login_codes {_COLUMNS}", "origin": ""}
_LOGIN = {"into": f"logins {_COLUMNS}, origin_hash", "origin": ", :origin_hash"}
_USE_CODE = "DELETE FROM login_codes WHERE hash = :code RETURNING who, role, token_id, expires_at"
_COUNTS = f"""
SELECT (SELECT count(*) FROM tokens t WHERE {_IN_FORCE}),
       (SELECT count(*) FROM logins l LEFT JOIN tokens t ON t.id = l.token_id
        WHERE {_LOGIN_IN_FORCE})
"""
_NOTE = """
INSERT INTO audit (at, who, door, address, verb, object, detail)
VALUES (:at, :who, :door, :address, :verb, :object, :detail)
"""
_AUDIT_CONDITIONS = {
    "who": "who = :who",
    "door": "door = :door",
    "verb": "verb = :verb",
    "object": "object = :object",
    "since": "at >= :since",
    "until": "at <= :until",
    "before_id": "id < :before_id",
}
_BEGIN = """
INSERT INTO requests AS r (who, key, fingerprint, begun_at) VALUES (:who, :key, :fingerprint, :now)
ON CONFLICT (who, key) DO UPDATE SET fingerprint = excluded.fingerprint, begun_at = excluded.begun_at, status = NULL,
                                     headers = NULL, body = NULL
WHERE r.begun_at <= :forgotten OR (r.status IS NULL AND r.begun_at <= :lost AND r.fingerprint = excluded.fingerprint)
RETURNING 1
"""
_KNOWN = f"SELECT {_ANSWER_COLUMNS} FROM requests WHERE who = :who AND key = :key"
_OURS = "who = :who AND key = :key AND begun_at = :begun_at"
# Those under way stay: without its row a request could be carried out twice at once.
_FORGET = """
DELETE FROM requests WHERE who = :who AND status IS NOT NULL AND begun_at <=
    (SELECT begun_at FROM requests WHERE who = :who ORDER BY begun_at DESC LIMIT 1 OFFSET :kept)
"""


_TRIES = 5


class Access:
    """Answers stores.access.AccessStore."""

    def __init__(self, database: Database[Connection]) -> None:
        self._database = database
        self._uses = TokenUses(self._write_use)

    async def put_token(self, token: NewToken, now: Micros) -> Token | None:
        values: dict[str, Any] = {"name": token.name, "role": token.role, "owner": token.owner, "hash": token.hash}
        values |= {"now": now, "expires_at": token.expires_at}
        rows = await self._database.write(lambda db: db.fetch(_PUT_TOKEN, values))
        return _load_token(rows[0]) if rows else None

    async def list_tokens(self) -> list[Token]:
        query = f"SELECT {_TOKEN_COLUMNS} FROM tokens t ORDER BY t.name"
        return load_all(_load_token, await self._database.read(lambda db: db.fetch(query)))

    async def remove_token(self, id: int) -> bool:
        # Its codes and logins go with it, by their foreign key.
        query = "DELETE FROM tokens WHERE id = :id RETURNING id"
        return bool(await self._database.write(lambda db: db.fetch(query, {"id": id})))

    async def find_token(self, hash: str, now: Micros) -> Token | None:
        query = f"SELECT {_TOKEN_COLUMNS} FROM tokens t WHERE t.hash = :hash AND {_IN_FORCE}"
        rows = await self._database.read(lambda db: db.fetch(query, {"hash": hash, "now": now}))
        found = load_all(_load_token, rows)
        if not found:
            return None
        used_at = await self._uses.note("tokens", hash, rows[0][5], now)
        return replace(found[0], used_at=None if used_at is None else from_micros(used_at))

    async def put_code(self, code: NewLogin, now: Micros) -> None:
        await self._database.write(lambda db: _put(db, _CODE, code, now))

    async def exchange_code(
        self, code: str, hash: str, origin_hash: str, expires_at: Micros, now: Micros
    ) -> Login | None:
        async def exchange(db: Connection) -> Login | None:
            for who, role, token_id, ends_at in await db.fetch(_USE_CODE, {"code": code}):
                login = NewLogin(hash, who, role, expires_at, token_id, origin_hash)
                if ends_at > now and await _put(db, _LOGIN, login, now):
                    return _load_login((who, role, token_id, None, expires_at))
            # Nobody else has this hash: it is there if this was done before, and its commit got no answer.
            known = {"hash": hash, "origin_hash": origin_hash, "now": now, "used_since": 0}
            rows = await db.fetch(_FIND_LOGIN, known)
            return _load_login(rows[0]) if rows else None

        return await self._database.write(exchange)

    async def put_login(self, login: NewLogin, now: Micros) -> bool:
        return await self._database.write(lambda db: _put(db, _LOGIN, login, now))

    async def find_login(self, hash: str, origin_hash: str, now: Micros, used_since: Micros) -> Login | None:
        values = {"hash": hash, "origin_hash": origin_hash, "now": now, "used_since": used_since}
        rows = await self._database.read(lambda db: db.fetch(_FIND_LOGIN, values))
        found = load_all(_load_login, rows)
        if not found:
            return None
        used_at = await self._uses.note("logins", hash, rows[0][3], now)
        return replace(found[0], used_at=None if used_at is None else from_micros(used_at))

    async def list_logins(self, now: Micros, used_since: Micros, hash: str | None = None) -> list[Browser]:
        values = {"now": now, "used_since": used_since, "hash": hash}
        return load_all(_load_browser, await self._database.read(lambda db: db.fetch(_LIST_LOGINS, values)))

    async def remove_login(self, hash: str) -> str | None:
        query = "DELETE FROM logins WHERE hash = :hash RETURNING who"
        rows = await self._database.write(lambda db: db.fetch(query, {"hash": hash}))
        return rows[0][0] if rows else None

    async def remove_logins(self, *, id: int | None = None, who: str | None = None) -> list[str]:
        async def remove(db: Connection) -> list[str]:
            if id is not None:
                rows = await db.fetch("DELETE FROM logins WHERE id = :id RETURNING who", {"id": id})
            else:
                theirs = "" if who is None else " WHERE who = :who"
                await db.run(f"DELETE FROM login_codes{theirs}", {"who": who})
                rows = await db.fetch(f"DELETE FROM logins{theirs} RETURNING who", {"who": who})
            return [name for (name,) in rows]

        return await self._database.write(remove)

    async def count_access(self, now: Micros, used_since: Micros) -> AccessCounts:
        values = {"now": now, "used_since": used_since}
        ((tokens, logins),) = await self._database.read(lambda db: db.fetch(_COUNTS, values))
        return AccessCounts(tokens, logins)

    async def note_audit(self, actor: Actor, verb: str, object: str, detail: str, now: Micros) -> None:
        values = {"at": now, "who": actor.who, "door": actor.door, "address": actor.address}
        values |= {"verb": verb, "object": object, "detail": detail}
        await self._database.write(lambda db: db.run(_NOTE, values))

    async def list_audit(self, wanted: AuditFilter) -> list[AuditEntry]:
        clauses, values = given(wanted, _AUDIT_CONDITIONS)
        query = f"SELECT {AUDIT_COLUMNS} FROM audit {where(clauses)} ORDER BY id DESC LIMIT {int(wanted.limit)}"
        return load_all(load_audit, await self._database.read(lambda db: db.fetch(query, values)))

    async def begin_request(self, who: str, key: str, fingerprint: str, now: Micros) -> Answer | None:
        values = {"who": who, "key": key, "fingerprint": fingerprint, "now": now}
        values |= {"forgotten": now - REQUEST_KEPT, "lost": now - _REQUEST_LOST}

        async def begin(db: Connection) -> Answer | None:
            for _ in range(_TRIES):
                if await db.fetch(_BEGIN, values):
                    return None
                if rows := await db.fetch(_KNOWN, values):
                    return _load_answer(rows[0])
                # Given back between the two.
            raise StoreUnavailable(f"the key {key!r} keeps changing; it is tried again")

        return await self._database.write(begin)

    async def end_request(self, who: str, key: str, begun_at: Micros, answer: Answer | None) -> None:
        ours = {"who": who, "key": key, "begun_at": begun_at}

        async def end(db: Connection) -> None:
            if answer is None:
                await db.run(f"DELETE FROM requests WHERE {_OURS}", ours)
                return
            said = {"status": answer.status, "headers": _headers_text(answer.headers), "body": answer.body}
            query = f"UPDATE requests SET status = :status, headers = :headers, body = :body WHERE {_OURS}"
            await db.run(query, {**ours, **said})
            await db.run(_FORGET, {"who": who, "kept": self._database.tuning.kept_answers})

        await self._database.write(end, once=False)

    async def _write_use(self, table: str, hash: str, now: Micros) -> None:
        query = f"UPDATE {table} SET used_at = :now WHERE hash = :hash"
        await self._database.write(lambda db: db.run(query, {"now": now, "hash": hash}), once=False)


async def _put(db: Connection, place: Mapping[str, str], login: NewLogin, now: Micros) -> bool:
    """Store a code or a login; False if the token that it is made with is gone."""
    values = {
        "hash": login.hash,
        "who": login.who,
        "role": login.role,
        "expires_at": login.expires_at,
        "token_id": login.token_id,
        "origin_hash": login.origin_hash,
        "now": now,
    }
    query = _PUT.format(**place, **(_OF_NONE if login.token_id is None else _OF_TOKEN))
    return bool(await db.fetch(query, values))


def _load_token(row: Sequence[Any]) -> Token:
    """A token, from _TOKEN_COLUMNS."""
    id, name, role, owner, created_at, used_at, expires_at = row
    return Token(id, name, Role(role), owner, from_micros(created_at), moment(used_at), moment(expires_at))


def _load_login(row: Sequence[Any]) -> Login:
    """A login, from _LOGIN_COLUMNS."""
    who, role, token_id, used_at, expires_at = row
    return Login(who, Role(role), token_id, moment(used_at), moment(expires_at))


def _load_browser(row: Sequence[Any]) -> Browser:
    """A login as it is listed, from _BROWSER_COLUMNS and whether it is the one that asks."""
    id, who, role, token, created_at, used_at, expires_at, current = row
    created, expires = from_micros(created_at), from_micros(expires_at)
    return Browser(id, who, Role(role), token, created, moment(used_at), expires, bool(current))


def load_audit(row: Sequence[Any]) -> AuditEntry:
    """An entry of the audit log, from AUDIT_COLUMNS; what cannot be read of it must not hide the rest."""
    id, at, who, door, address, verb, object, text = row
    try:
        detail = _decode(text)
    except msgspec.DecodeError:
        detail = {"text": text}
    return AuditEntry(id, from_micros(at), who, door, address, verb, object, detail)


def _load_answer(row: Sequence[Any]) -> Answer:
    """A stored answer, from _ANSWER_COLUMNS."""
    fingerprint, status, headers, body = row
    return Answer(fingerprint, status, None if headers is None else _decode_headers(headers), bytes(body or b""))


def _headers_text(headers: Mapping[str, str] | None) -> str | None:
    """Headers of an answer as they are stored."""
    return None if headers is None else msgspec.json.encode(headers).decode()
