"""Who may, in SQLite: tokens, codes and logins by the hash of their secret, the audit log, and answers to repeated
requests. Nothing here wakes an engine."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import apsw

from ostinato.clock import Micros, from_micros
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
from ostinato.stores.rows import load_all
from ostinato.stores.sqlite.database import Database
from ostinato.stores.sqlite.query import fetch

__all__ = ["SqliteAccess"]

_IN_FORCE = "(t.expires_at IS NULL OR t.expires_at > :now)"
_PUT_TOKEN = f"""
INSERT INTO tokens AS t (name, role, owner, hash, created_at, expires_at) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (name) DO NOTHING RETURNING {TOKEN_COLUMNS.replace("t.", "")}
"""
# A login that was made with a token ends with it. One that is idle for too long ends too.
_LOGIN_IN_FORCE = f"l.expires_at > :now AND coalesce(l.used_at, l.created_at) > :used_since AND {_IN_FORCE}"
_FIND_LOGIN = f"""
SELECT {LOGIN_COLUMNS} FROM logins l LEFT JOIN tokens t ON t.id = l.token_id
WHERE l.hash = :hash AND l.origin_hash = :origin_hash AND {_LOGIN_IN_FORCE}
"""
_LIST_LOGINS = f"""
SELECT {BROWSER_COLUMNS}, coalesce(l.hash = :hash, false) FROM logins l LEFT JOIN tokens t ON t.id = l.token_id
WHERE {_LOGIN_IN_FORCE} ORDER BY l.id DESC
"""
# Of a token that has been removed meanwhile nothing more can be made.
_PUT = """
INSERT INTO {into}) SELECT :hash, :who, :role, :expires_at, :token_id, :now{origin}
WHERE :token_id IS NULL OR EXISTS (SELECT 1 FROM tokens WHERE id = :token_id)
RETURNING who, role, token_id, NULL, expires_at
"""
_COLUMNS = "(hash, who, role, expires_at, token_id, created_at"
_PUT_CODE = _PUT.format(into=f"login_codes {_COLUMNS}", origin="")
_PUT_LOGIN = _PUT.format(into=f"logins {_COLUMNS}, origin_hash", origin=", :origin_hash")
_COUNTS = f"""
SELECT (SELECT count(*) FROM tokens t WHERE {_IN_FORCE}),
       (SELECT count(*) FROM logins l LEFT JOIN tokens t ON t.id = l.token_id
        WHERE {_LOGIN_IN_FORCE})
"""
_BEGIN = """
INSERT INTO requests AS r (who, key, fingerprint, begun_at) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (who, key) DO UPDATE SET fingerprint = ?3, begun_at = ?4, status = NULL, headers = NULL, body = NULL
WHERE r.begun_at <= ?5 OR (r.status IS NULL AND r.begun_at <= ?6 AND r.fingerprint = ?3) RETURNING 1
"""
# Those under way stay: without its row a request could be carried out twice at once.
_FORGET = """
DELETE FROM requests WHERE who = ?1 AND status IS NOT NULL AND begun_at <=
    (SELECT begun_at FROM requests WHERE who = ?1 ORDER BY begun_at DESC LIMIT 1 OFFSET ?2)
"""


class SqliteAccess:
    """Answers stores.base.AccessStore."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._uses = Uses(self._write_use)

    async def put_token(self, token: NewToken, now: Micros) -> Token | None:
        values = (token.name, token.role, token.owner, token.hash, now, token.expires_at)
        rows = await self._database.write(lambda connection: fetch(connection, _PUT_TOKEN, values))
        return load_token(rows[0]) if rows else None

    async def list_tokens(self) -> list[Token]:
        query = f"SELECT {TOKEN_COLUMNS} FROM tokens t ORDER BY t.name"
        return load_all(load_token, await self._database.read(lambda connection: fetch(connection, query)))

    async def remove_token(self, id: int) -> bool:
        # Its codes and logins go with it, by their foreign key.
        query = "DELETE FROM tokens WHERE id = ? RETURNING id"
        return bool(await self._database.write(lambda connection: fetch(connection, query, (id,))))

    async def find_token(self, hash: str, now: Micros) -> Token | None:
        query = f"SELECT {TOKEN_COLUMNS} FROM tokens t WHERE t.hash = :hash AND {_IN_FORCE}"
        rows = await self._database.read(lambda connection: fetch(connection, query, {"hash": hash, "now": now}))
        found = load_all(load_token, rows)
        if not found:
            return None
        used_at = await self._uses.note("tokens", hash, rows[0][5], now)
        return replace(found[0], used_at=None if used_at is None else from_micros(used_at))

    async def put_code(self, code: NewLogin, now: Micros) -> None:
        values = _values(code, now)
        await self._database.write(lambda connection: fetch(connection, _PUT_CODE, values))

    async def exchange_code(
        self, code: str, hash: str, origin_hash: str, expires_at: Micros, now: Micros
    ) -> Login | None:
        def exchange(connection: apsw.Connection) -> Login | None:
            query = "DELETE FROM login_codes WHERE hash = ? RETURNING who, role, token_id, expires_at"
            for who, role, token_id, ends_at in fetch(connection, query, (code,)):
                if ends_at > now:
                    values = _values(NewLogin(hash, who, role, expires_at, token_id, origin_hash), now)
                    return load_login(fetch(connection, _PUT_LOGIN, values)[0])
            return None

        return await self._database.write(exchange)

    async def put_login(self, login: NewLogin, now: Micros) -> bool:
        values = _values(login, now)
        return bool(await self._database.write(lambda connection: fetch(connection, _PUT_LOGIN, values)))

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
        query = "DELETE FROM logins WHERE hash = ? RETURNING who"
        rows = await self._database.write(lambda connection: fetch(connection, query, (hash,)))
        return rows[0][0] if rows else None

    async def remove_logins(self, *, id: int | None = None, who: str | None = None) -> list[str]:
        def remove(connection: apsw.Connection) -> list[str]:
            if id is not None:
                return [row[0] for row in fetch(connection, "DELETE FROM logins WHERE id = ? RETURNING who", (id,))]
            theirs, values = ("", ()) if who is None else (" WHERE who = ?", (who,))
            fetch(connection, f"DELETE FROM login_codes{theirs}", values)
            return [row[0] for row in fetch(connection, f"DELETE FROM logins{theirs} RETURNING who", values)]

        return await self._database.write(remove)

    async def count_access(self, now: Micros, used_since: Micros) -> AccessCounts:
        values = {"now": now, "used_since": used_since}
        rows = await self._database.read(lambda connection: fetch(connection, _COUNTS, values))
        return AccessCounts(*rows[0])

    async def note_audit(self, actor: Actor, verb: str, object: str, detail: str, now: Micros) -> None:
        query = "INSERT INTO audit (at, who, door, address, verb, object, detail) VALUES (?, ?, ?, ?, ?, ?, ?)"
        values = (now, actor.who, actor.door, actor.address, verb, object, detail)
        await self._database.write(lambda connection: fetch(connection, query, values))

    async def list_audit(self, wanted: AuditFilter) -> list[AuditEntry]:
        clauses: list[str] = []
        values: list[Any] = []
        for clause, value in (
            ("who = ?", wanted.who),
            ("door = ?", wanted.door),
            ("verb = ?", wanted.verb),
            ("object = ?", wanted.object),
            ("at >= ?", wanted.since),
            ("at <= ?", wanted.until),
            ("id < ?", wanted.before_id),
        ):
            if value is not None:
                clauses.append(clause)
                values.append(value)
        where = f"WHERE {' AND '.join(clauses)}" if clauses else ""
        query = f"SELECT {AUDIT_COLUMNS} FROM audit {where} ORDER BY id DESC LIMIT {int(wanted.limit)}"
        rows = await self._database.read(lambda connection: fetch(connection, query, values))
        return load_all(load_audit, rows)

    async def begin_request(self, who: str, key: str, fingerprint: str, now: Micros) -> Answer | None:
        def begin(connection: apsw.Connection) -> Answer | None:
            if fetch(connection, _BEGIN, (who, key, fingerprint, now, now - REQUEST_KEPT, now - REQUEST_LOST)):
                return None
            query = f"SELECT {ANSWER_COLUMNS} FROM requests WHERE who = ? AND key = ?"
            return load_answer(fetch(connection, query, (who, key))[0])

        return await self._database.write(begin)

    async def end_request(self, who: str, key: str, begun_at: Micros, answer: Answer | None) -> None:
        ours = "who = ?1 AND key = ?2 AND begun_at = ?3"

        def end(connection: apsw.Connection) -> None:
            if answer is None:
                connection.execute(f"DELETE FROM requests WHERE {ours}", (who, key, begun_at))
                return
            kept = (who, key, begun_at, answer.status, headers_text(answer.headers), answer.body)
            connection.execute(f"UPDATE requests SET status = ?4, headers = ?5, body = ?6 WHERE {ours}", kept)
            connection.execute(_FORGET, (who, self._database.tuning.kept_answers))

        await self._database.write(end)

    async def _write_use(self, table: str, hash: str, now: Micros) -> None:
        query = f"UPDATE {table} SET used_at = ? WHERE hash = ?"
        await self._database.write(lambda connection: fetch(connection, query, (now, hash)))


def _values(login: NewLogin, now: Micros) -> dict[str, Any]:
    return {
        "hash": login.hash,
        "who": login.who,
        "role": login.role,
        "expires_at": login.expires_at,
        "token_id": login.token_id,
        "origin_hash": login.origin_hash,
        "now": now,
    }
