"""Who may, in PostgreSQL: tokens, codes and logins by the hash of their secret, the audit log, and answers to repeated
requests. Nothing here wakes an engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ostinato.clock import Micros, from_micros
from ostinato.errors import StoreUnavailable
from ostinato.models.access import Actor, Answer, AuditEntry, AuditFilter, Browser, Login, NewLogin, NewToken, Token
from ostinato.stores.access import AccessCounts
from ostinato.stores.access_rows import (
    ANSWER_COLUMNS,
    AUDIT_COLUMNS,
    BROWSER_COLUMNS,
    LOGIN_COLUMNS,
    REQUEST_KEPT,
    REQUEST_LOST,
    TOKEN_COLUMNS,
    headers_text,
    load_answer,
    load_audit,
    load_browser,
    load_login,
    load_token,
)
from ostinato.stores.access_uses import Uses
from ostinato.stores.postgres.database import Database
from ostinato.stores.postgres.query import Connection, fetch, readable
from ostinato.stores.rows import load_all

__all__ = ["PostgresAccess"]

_IN_FORCE = "(t.expires_at IS NULL OR t.expires_at > %(now)s)"
# The same hash is the same call, whose commit got no answer.
_PUT_TOKEN = f"""
INSERT INTO tokens AS t (name, role, owner, hash, created_at, expires_at) VALUES (%s, %s, %s, %s, %s, %s)
ON CONFLICT (name) DO UPDATE SET hash = excluded.hash WHERE t.hash = excluded.hash RETURNING {TOKEN_COLUMNS}
"""
# A login that was made with a token ends with it. One that is idle for too long ends too.
_LOGIN_IN_FORCE = f"l.expires_at > %(now)s AND coalesce(l.used_at, l.created_at) > %(used_since)s AND {_IN_FORCE}"
_FIND_LOGIN = f"""
SELECT {LOGIN_COLUMNS} FROM logins l LEFT JOIN tokens t ON t.id = l.token_id
WHERE l.hash = %(hash)s AND l.origin_hash = %(origin_hash)s AND {_LOGIN_IN_FORCE}
"""
_LIST_LOGINS = f"""
SELECT {BROWSER_COLUMNS}, coalesce(l.hash = %(hash)s::text, false) FROM logins l LEFT JOIN tokens t ON t.id = l.token_id
WHERE {_LOGIN_IN_FORCE} ORDER BY l.id DESC
"""
# Of a token that has been removed meanwhile nothing more can be made.
_PUT = """
INSERT INTO {into})
SELECT %(hash)s, %(who)s, %(role)s, %(expires_at)s, {token}, %(now)s{origin} {source}
ON CONFLICT (hash) DO UPDATE SET hash = excluded.hash RETURNING 1
"""
_COLUMNS = "(hash, who, role, expires_at, token_id, created_at"
_CODE = {"into": f"login_codes {_COLUMNS}", "origin": ""}
_LOGIN = {"into": f"logins {_COLUMNS}, origin_hash", "origin": ", %(origin_hash)s"}
_OF_TOKEN = "FROM tokens t WHERE t.id = %(token_id)s FOR KEY SHARE"
_EXCHANGE = f"""
WITH code AS (DELETE FROM login_codes WHERE hash = %(code)s RETURNING who, role, token_id, expires_at)
INSERT INTO logins AS l (hash, who, role, expires_at, token_id, created_at, origin_hash)
SELECT %(hash)s, who, role, %(expires_at)s, token_id, %(now)s, %(origin_hash)s FROM code WHERE expires_at > %(now)s
RETURNING {LOGIN_COLUMNS}
"""
_COUNTS = f"""
SELECT (SELECT count(*) FROM tokens t WHERE {_IN_FORCE}),
       (SELECT count(*) FROM logins l LEFT JOIN tokens t ON t.id = l.token_id
        WHERE {_LOGIN_IN_FORCE})
"""
_NOTE = "INSERT INTO audit (at, who, door, address, verb, object, detail) VALUES (%s, %s, %s, %s, %s, %s, %s)"
_BEGIN = """
INSERT INTO requests AS r (who, key, fingerprint, begun_at) VALUES (%s, %s, %s, %s)
ON CONFLICT (who, key) DO UPDATE SET fingerprint = excluded.fingerprint, begun_at = excluded.begun_at, status = NULL,
                                     headers = NULL, body = NULL
WHERE r.begun_at <= %s OR (r.status IS NULL AND r.begun_at <= %s AND r.fingerprint = excluded.fingerprint)
RETURNING 1
"""
# Those under way stay: without its row a request could be carried out twice at once.
_FORGET = """
DELETE FROM requests WHERE who = %s AND status IS NOT NULL AND begun_at <=
    (SELECT begun_at FROM requests WHERE who = %s ORDER BY begun_at DESC LIMIT 1 OFFSET %s)
"""
_TRIES = 5


class PostgresAccess:
    """Answers stores.base.AccessStore."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._uses = Uses(self._write_use)

    async def put_token(self, token: NewToken, now: Micros) -> Token | None:
        values = (readable(token.name), token.role, readable(token.owner), token.hash, now, token.expires_at)
        rows = await self._database.write(lambda connection: fetch(connection, _PUT_TOKEN, values))
        return load_token(rows[0]) if rows else None

    async def list_tokens(self) -> list[Token]:
        query = f"SELECT {TOKEN_COLUMNS} FROM tokens t ORDER BY t.name"
        return load_all(load_token, await self._database.read(lambda connection: fetch(connection, query)))

    async def remove_token(self, id: int) -> bool:
        # Its codes and logins go with it, by their foreign key.
        query = "DELETE FROM tokens WHERE id = %s RETURNING id"
        return bool(await self._database.write(lambda connection: fetch(connection, query, (id,))))

    async def find_token(self, hash: str, now: Micros) -> Token | None:
        query = f"SELECT {TOKEN_COLUMNS} FROM tokens t WHERE t.hash = %(hash)s AND {_IN_FORCE}"
        rows = await self._database.read(lambda connection: fetch(connection, query, {"hash": hash, "now": now}))
        found = load_all(load_token, rows)
        if not found:
            return None
        used_at = await self._uses.note("tokens", hash, rows[0][5], now)
        return replace(found[0], used_at=None if used_at is None else from_micros(used_at))

    async def put_code(self, code: NewLogin, now: Micros) -> None:
        await self._put(_CODE, code, now)

    async def exchange_code(
        self, code: str, hash: str, origin_hash: str, expires_at: Micros, now: Micros
    ) -> Login | None:
        values = {"code": code, "hash": hash, "origin_hash": origin_hash, "expires_at": expires_at}
        values |= {"now": now, "used_since": 0}

        async def exchange(connection: Connection) -> Login | None:
            rows = await fetch(connection, _EXCHANGE, values)
            # Nobody else has this hash: it is there if this was done before, and its commit got no answer.
            rows = rows or await fetch(connection, _FIND_LOGIN, values)
            return load_login(rows[0]) if rows else None

        return await self._database.write(exchange)

    async def put_login(self, login: NewLogin, now: Micros) -> bool:
        return await self._put(_LOGIN, login, now)

    async def find_login(self, hash: str, origin_hash: str, now: Micros, used_since: Micros) -> Login | None:
        values = {"hash": hash, "origin_hash": origin_hash, "now": now, "used_since": used_since}
        rows = await self._database.read(lambda connection: fetch(connection, _FIND_LOGIN, values))
        found = load_all(load_login, rows)
        if not found:
            return None
        used_at = await self._uses.note("logins", hash, rows[0][3], now)
        return replace(found[0], used_at=None if used_at is None else from_micros(used_at))

    async def list_logins(self, now: Micros, used_since: Micros, hash: str | None = None) -> list[Browser]:
        values = {"now": now, "used_since": used_since, "hash": hash}
        rows = await self._database.read(lambda connection: fetch(connection, _LIST_LOGINS, values))
        return load_all(load_browser, rows)

    async def remove_login(self, hash: str) -> str | None:
        query = "DELETE FROM logins WHERE hash = %s RETURNING who"
        rows = await self._database.write(lambda connection: fetch(connection, query, (hash,)))
        return rows[0][0] if rows else None

    async def remove_logins(self, *, id: int | None = None, who: str | None = None) -> list[str]:
        theirs, values = ("", ()) if who is None else (" WHERE who = %s", (readable(who),))

        async def remove(connection: Connection) -> list[str]:
            if id is not None:
                rows = await fetch(connection, "DELETE FROM logins WHERE id = %s RETURNING who", (id,))
                return [row[0] for row in rows]
            await fetch(connection, f"DELETE FROM login_codes{theirs} RETURNING 1", values)
            return [row[0] for row in await fetch(connection, f"DELETE FROM logins{theirs} RETURNING who", values)]

        return await self._database.write(remove)

    async def count_access(self, now: Micros, used_since: Micros) -> AccessCounts:
        values = {"now": now, "used_since": used_since}
        rows = await self._database.read(lambda connection: fetch(connection, _COUNTS, values))
        tokens, logins = rows[0]
        return AccessCounts(tokens, logins)

    async def note_audit(self, actor: Actor, verb: str, object: str, detail: str, now: Micros) -> None:
        address = None if actor.address is None else readable(actor.address)
        values = (now, readable(actor.who), actor.door, address, verb, readable(object), readable(detail))

        async def note(connection: Connection) -> None:
            await connection.execute(_NOTE, values)

        await self._database.write(note)

    async def list_audit(self, wanted: AuditFilter) -> list[AuditEntry]:
        clauses: list[str] = []
        values: list[Any] = []
        for clause, value in (
            ("who = %s", wanted.who),
            ("door = %s", wanted.door),
            ("verb = %s", wanted.verb),
            ("object = %s", wanted.object),
            ("at >= %s", wanted.since),
            ("at <= %s", wanted.until),
            ("id < %s", wanted.before_id),
        ):
            if value is not None:
                clauses.append(clause)
                values.append(readable(value) if isinstance(value, str) else value)
        where = f"WHERE {' AND '.join(clauses)}" if clauses else ""
        query = f"SELECT {AUDIT_COLUMNS} FROM audit {where} ORDER BY id DESC LIMIT {int(wanted.limit)}"
        rows = await self._database.read(lambda connection: fetch(connection, query, values))
        return load_all(load_audit, rows)

    async def begin_request(self, who: str, key: str, fingerprint: str, now: Micros) -> Answer | None:
        taken = (who, key, fingerprint, now, now - REQUEST_KEPT, now - REQUEST_LOST)

        async def begin(connection: Connection) -> Answer | None:
            known = f"SELECT {ANSWER_COLUMNS} FROM requests WHERE who = %s AND key = %s"
            for _ in range(_TRIES):
                if await fetch(connection, _BEGIN, taken):
                    return None
                rows = await fetch(connection, known, (who, key))
                if rows:
                    return load_answer(rows[0])
                # Given back between the two.
            raise StoreUnavailable(f"the key {key!r} changes hands all the time; it is tried again")

        return await self._database.write(begin)

    async def end_request(self, who: str, key: str, begun_at: Micros, answer: Answer | None) -> None:
        ours = "who = %s AND key = %s AND begun_at = %s"

        async def end(connection: Connection) -> None:
            if answer is None:
                await connection.execute(f"DELETE FROM requests WHERE {ours}", (who, key, begun_at))
                return
            kept = (answer.status, headers_text(answer.headers), answer.body, who, key, begun_at)
            await connection.execute(f"UPDATE requests SET status = %s, headers = %s, body = %s WHERE {ours}", kept)
            await connection.execute(_FORGET, (who, who, self._database.tuning.kept_answers))

        await self._database.write(end, once=False)

    async def _put(self, place: Mapping[str, str], login: NewLogin, now: Micros) -> bool:
        values = {
            "hash": login.hash,
            "who": readable(login.who),
            "role": login.role,
            "expires_at": login.expires_at,
            "token_id": login.token_id,
            "origin_hash": login.origin_hash,
            "now": now,
        }
        token, source = ("NULL::bigint", "") if login.token_id is None else ("t.id", _OF_TOKEN)
        query = _PUT.format(token=token, source=source, **place)
        return bool(await self._database.write(lambda connection: fetch(connection, query, values)))

    async def _write_use(self, table: str, hash: str, now: Micros) -> None:
        async def note(connection: Connection) -> None:
            await connection.execute(f"UPDATE {table} SET used_at = %s WHERE hash = %s", (now, hash))

        await self._database.write(note, once=False)
