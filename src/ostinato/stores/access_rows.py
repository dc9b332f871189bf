"""Rows to models of who may and who did: tokens, logins, the audit log, stored answers. As rows.py, for every store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ostinato.clock import SECOND, Micros, from_micros
from ostinato.models.access import Answer, AuditEntry, Browser, Login, Role, Token

__all__ = [
    "ANSWER_COLUMNS",
    "AUDIT_COLUMNS",
    "BROWSER_COLUMNS",
    "LOGIN_COLUMNS",
    "REMOVED_AFTER_RUN",
    "REMOVED_SCHEDULE",
    "REQUEST_KEPT",
    "REQUEST_LOST",
    "TOKEN_COLUMNS",
    "headers_text",
    "load_answer",
    "load_audit",
    "load_browser",
    "load_login",
    "load_token",
]

Row = Sequence[Any]

TOKEN_COLUMNS = "t.id, t.name, t.role, t.owner, t.created_at, t.used_at, t.expires_at"
LOGIN_COLUMNS = "l.who, l.role, l.token_id, l.used_at, l.expires_at"
BROWSER_COLUMNS = "l.id, l.who, l.role, t.name, l.created_at, l.used_at, l.expires_at"
AUDIT_COLUMNS = "id, at, who, door, address, verb, object, detail"
ANSWER_COLUMNS = "fingerprint, status, headers, body"

REQUEST_KEPT: Micros = 24 * 3_600 * SECOND
"""How long the answer to a request is kept for whoever repeats it."""
REQUEST_LOST: Micros = 5 * 60 * SECOND
"""A request that has no answer for so long has none any more: its process is gone, and it may be sent again."""
REMOVED_SCHEDULE = "schedule.remove"
"""The verb of the audit log that says that a schedule is gone."""
REMOVED_AFTER_RUN = f"'ostinato', 'engine', '{REMOVED_SCHEDULE}'"
"""Who, door and verb in SQL, for one that its node deleted because it had run (`delete_after_run`)."""

_decode = msgspec.json.Decoder(dict[str, Any]).decode
_decode_headers = msgspec.json.Decoder(dict[str, str]).decode


def load_token(row: Row) -> Token:
    """A token, from TOKEN_COLUMNS."""
    id, name, role, owner, created_at, used_at, expires_at = row
    return Token(id, name, Role(role), owner, from_micros(created_at), _moment(used_at), _moment(expires_at))


def load_login(row: Row) -> Login:
    """A login, from LOGIN_COLUMNS."""
    who, role, token_id, used_at, expires_at = row
    return Login(who, Role(role), token_id, _moment(used_at), _moment(expires_at))


def load_browser(row: Row) -> Browser:
    """A login as it is listed, from BROWSER_COLUMNS and whether it is the one that asks."""
    id, who, role, token, created_at, used_at, expires_at, current = row
    created, expires = from_micros(created_at), from_micros(expires_at)
    return Browser(id, who, Role(role), token, created, _moment(used_at), expires, bool(current))


def load_audit(row: Row) -> AuditEntry:
    """An entry of the audit log, from AUDIT_COLUMNS; what cannot be read of it must not hide the rest."""
    id, at, who, door, address, verb, object, text = row
    try:
        detail = _decode(text)
    except msgspec.DecodeError:
        detail = {"text": text}
    return AuditEntry(id, from_micros(at), who, door, address, verb, object, detail)


def load_answer(row: Row) -> Answer:
    """A stored answer, from ANSWER_COLUMNS."""
    fingerprint, status, headers, body = row
    return Answer(fingerprint, status, None if headers is None else _decode_headers(headers), bytes(body or b""))


def headers_text(headers: Mapping[str, str] | None) -> str | None:
    """Headers of an answer as they are stored."""
    return None if headers is None else msgspec.json.encode(headers).decode()


def _moment(instant: Micros | None) -> Any:
    return None if instant is None else from_micros(instant)
