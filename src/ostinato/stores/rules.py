"""The rules that every row of the ledger keeps, and what becomes of one that breaks them: the same for every store.

Migration 0007 has the same rules as CHECK constraints (PostgreSQL's 0009 makes those of a run one, without what
costs too much), so a bad row comes from outside: an older program, a restored backup, SQL by hand with the checks off.
quarantine.py of each store looks for such rows and sets them aside.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from string import Template

from ostinato.models.access import Role
from ostinato.models.event import EventKind
from ostinato.models.session import Mode
from ostinato.models.states import ENDS, Cause, RunState, Trigger

__all__ = [
    "GROWING",
    "KEYS",
    "MENDS",
    "NAMED",
    "NUMBERED",
    "RULES",
    "SECRETS",
    "STEPS",
    "UNDECODABLE",
    "UNREADABLE",
    "Dialect",
    "Rule",
]

UNREADABLE = "its row could not be read: "
"""How the reason of whatever was set aside begins."""

UNDECODABLE = "one of its texts is not UTF-8"
"""What is wrong with a row that has such a text: SQLite takes any bytes for one, PostgreSQL refuses them."""

_FAR = 4 * 10**18
"""No instant, duration or token is beyond it: what is added to one still fits into 64 bits."""
_MANY = 10**15
_PRIORITY = 10**12


@dataclass(frozen=True, slots=True)
class Rule:
    """What holds for every row of a table, in SQL; what begins with `$` is each store's own. As in every CHECK, what
    is NULL is not broken."""

    table: str
    name: str
    holds: str
    says: str
    """What is wrong with a row that breaks it."""
    sqlite_only: bool = False


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one database writes what both have."""

    yes: str
    no: str
    json_kind: str
    """What a text COLUMN is: 'array', 'object', or another word for whatever else."""
    readable: str
    """A text EXPRESSION, readable whatever its bytes are."""
    undecodable: str | None
    """Whether one of the texts COLUMNS is not UTF-8; None where the database refuses such."""
    is_sqlite: bool

    def write(self, sql: str) -> str:
        """SQL of this page for this database."""
        kinds = {name: self.json_kind.replace("COLUMN", name) for name in ("tasks", "services", "statistics", "env")}
        return Template(sql).substitute(yes=self.yes, no=self.no, **kinds)

    def rules(self, table: str) -> list[Rule]:
        """The rules of a table that this database has."""
        return [rule for rule in RULES if rule.table == table and (self.is_sqlite or not rule.sqlite_only)]


def _one_of(column: str, values: Iterable[str]) -> str:
    """Not IN: SQLite would make a table of the words for every statement, which costs a run a tenth of its time."""
    return f"({' OR '.join(f'{column} = {str(value)!r}' for value in values)})"


def _within(column: str, low: int, high: int) -> str:
    return f"{column} BETWEEN {low} AND {high}"


def _instants(*columns: str) -> str:
    return " AND ".join(_within(column, -_FAR, _FAR) for column in columns)


def _flags(*columns: str) -> str:
    return " AND ".join(_within(column, 0, 1) for column in columns)


def _else(column: str, holds: str, otherwise: str) -> str:
    return f"{column} = CASE WHEN {holds} THEN {column} ELSE {otherwise} END"


def _sane(column: str, otherwise: str) -> str:
    """Set an instant that is too far away to another."""
    return _else(column, _within(column, -_FAR, _FAR), otherwise)


def _sane_or_none(column: str, otherwise: str) -> str:
    return _else(column, f"{column} IS NULL OR {_instants(column)}", otherwise)


_ENDS = [state for state in RunState if state in ENDS]
_ENDED = _one_of("state", _ENDS)
_RATE = (
    "(rate_count IS NULL AND rate_per IS NULL) OR "
    "(coalesce(rate_count, 0) BETWEEN 1 AND 1000000 AND coalesce(rate_per, 0) BETWEEN 1 AND 31622400000000)"
)
_INSTANTS = "one of its times is out of range"
_NUMBERS = "one of its numbers is out of range"
_SWITCH = "one of its switches is neither on nor off"

RULES: tuple[Rule, ...] = (
    Rule("runs", "runs_known_state", _one_of("state", RunState), "its state is unknown"),
    Rule("runs", "runs_known_trigger", _one_of("trigger", Trigger), "its trigger is unknown"),
    Rule("runs", "runs_known_mode", _one_of("mode", Mode), "its mode is unknown"),
    Rule(
        "runs",
        "runs_started",
        "state <> 'running' OR (attempt >= 1 AND started_at IS NOT NULL)",
        "it is running and has never started",
    ),
    Rule(
        "runs",
        "runs_finished_at",
        "state IN ('queued', 'running') OR finished_at IS NOT NULL",
        "it has ended but has no end time",
    ),
    Rule("runs", "runs_token", f"{_within('token', 0, _FAR)} AND {_within('attempt', 0, _MANY)}", _NUMBERS),
    Rule(
        "runs",
        "runs_numbers",
        f"{_within('count', 1, _MANY)} AND {_within('priority', -_PRIORITY, _PRIORITY)}",
        _NUMBERS,
    ),
    Rule("runs", "runs_due_times", _instants("due_at", "last_due_at", "expires_at"), _INSTANTS),
    Rule("runs", "runs_instants", _instants("ready_at", "started_at", "finished_at"), _INSTANTS),
    Rule("runs", "runs_switches", _flags("waiting", "burst", "later"), _SWITCH, sqlite_only=True),
    Rule(
        "schedules",
        "schedules_numbers",
        f"{_within('remaining', 0, _MANY)} AND {_within('failures', 0, _MANY)} AND {_within('version', 1, _MANY)} "
        f"AND {_within('after_finish', 0, _FAR)}",
        _NUMBERS,
    ),
    Rule(
        "schedules",
        "schedules_instants",
        _instants("anchor_at", "next_at", "paused_since", "created_at", "updated_at"),
        _INSTANTS,
    ),
    Rule("schedules", "schedules_switches", _flags("enabled", "orphaned"), _SWITCH, sqlite_only=True),
    Rule("attempts", "attempts_instants", _instants("started_at", "finished_at"), _INSTANTS),
    Rule("lanes", "lanes_limit", _within("max_running", 0, 2**31 - 1), "its limit is out of range"),
    Rule("lanes", "lanes_rate", _RATE, "its rate is not a rate"),
    Rule("lanes", "lanes_instants", _instants("rate_from"), _INSTANTS),
    Rule("lanes", "lanes_switches", _flags("paused"), _SWITCH, sqlite_only=True),
    Rule("sessions", "sessions_limit", _within("max_concurrent", 1, 2**31 - 1), _NUMBERS),
    Rule("sessions", "sessions_instants", _instants("cutoff_at", "sent_at"), _INSTANTS),
    Rule("sessions", "sessions_switches", _flags("throttled"), _SWITCH, sqlite_only=True),
    Rule("events", "events_known_kind", _one_of("kind", EventKind), "its kind is unknown"),
    Rule("events", "events_instants", _instants("at"), _INSTANTS),
    Rule(
        "nodes",
        "nodes_documents",
        "$tasks = 'array' AND $services = 'object' AND $statistics = 'object'",
        "one of its documents is not JSON",
    ),
    Rule(
        "nodes",
        "nodes_numbers",
        " AND ".join(_within(column, 0, _MANY) for column in ("pid", "slots", "running")),
        _NUMBERS,
    ),
    Rule("nodes", "nodes_instants", _instants("started_at", "seen_at", "lease_until", "lost_at"), _INSTANTS),
    Rule("nodes", "nodes_switches", _flags("draining", "drain"), _SWITCH, sqlite_only=True),
    Rule("projects", "projects_documents", "$env = 'object'", "its variables are not JSON"),
    Rule("projects", "projects_instants", _instants("created_at"), _INSTANTS),
    Rule("tokens", "tokens_known_role", _one_of("role", Role), "its role is unknown"),
    Rule("tokens", "tokens_instants", _instants("created_at", "used_at", "expires_at"), _INSTANTS),
    Rule("login_codes", "login_codes_known_role", _one_of("role", Role), "its role is unknown"),
    Rule("login_codes", "login_codes_instants", _instants("created_at", "expires_at"), _INSTANTS),
    Rule("logins", "logins_known_role", _one_of("role", Role), "its role is unknown"),
    Rule("logins", "logins_instants", _instants("created_at", "used_at", "expires_at"), _INSTANTS),
    Rule("audit", "audit_instants", _instants("at"), _INSTANTS),
)
"""Each is one CHECK. What is written together is checked together: SQLite skips a check whose columns do not change."""

KEYS = {
    "runs": "id",
    "schedules": "id",
    "attempts": "concat(run_id, '/', number)",
    "lanes": "name",
    "sessions": "key",
    "events": "id",
    "nodes": "id",
    "projects": "name",
    "tokens": "name",
    "login_codes": "substr(hash, 1, 8)",
    "logins": "id",
    "audit": "id",
}
"""What each row is called, in the order in which tables are looked at."""

NUMBERED = frozenset({"runs", "schedules", "events", "logins", "audit"})
"""Tables whose rows are called by a number."""

STEPS = {**dict.fromkeys(NUMBERED, "id"), "attempts": "run_id"}
"""By what a table is gone through, some rows at a time."""

GROWING = frozenset({"runs", "attempts", "events", "audit"})
"""Tables that may have millions of rows."""

NAMED = frozenset({"lanes", "sessions", "nodes", "projects", "tokens", "login_codes"})
"""Tables whose rows are called by a text."""

SECRETS = frozenset({"hash", "origin_hash"})
"""Columns that are not copied."""

_RUN = ", ".join(
    (
        # What has ended keeps its end; what has not is over now, and says why.
        f"reason = CASE WHEN {_ENDED} THEN reason ELSE :why END",
        f"cause = CASE WHEN {_ENDED} THEN cause ELSE '{Cause.NOT_LOADABLE}' END",
        _else("state", _ENDED, "'failed'"),
        f"finished_at = CASE WHEN {_ENDED} AND {_within('finished_at', -_FAR, _FAR)} THEN finished_at ELSE :now END",
        # By hand, where its due time cannot be kept: a schedule has one row for each.
        _else("trigger", f"{_one_of('trigger', Trigger)} AND {_within('due_at', -_FAR, _FAR)}", "'manual'"),
        _sane("due_at", ":now"),
        _sane("ready_at", ":now"),
        *(_sane(column, "NULL") for column in ("last_due_at", "expires_at", "started_at")),
        _else("mode", _one_of("mode", Mode), "NULL"),
        _else("token", _within("token", 0, _FAR), "0"),
        _else("attempt", _within("attempt", 0, _MANY), "0"),
        _else("count", _within("count", 1, _MANY), "1"),
        _else("priority", _within("priority", -_PRIORITY, _PRIORITY), "0"),
        "waiting = $no, burst = $no, later = $no",
    )
)
_SCHEDULE = ", ".join(
    (
        "enabled = $no, broken = :why, next_at = NULL, paused_since = NULL, paused_reason = NULL",
        "orphaned = CASE WHEN orphaned THEN $yes ELSE $no END",
        _else("remaining", _within("remaining", 0, _MANY), "NULL"),
        _else("failures", _within("failures", 0, _MANY), "0"),
        f"version = CASE WHEN {_within('version', 1, _MANY - 1)} THEN version + 1 ELSE 1 END",
        _else("after_finish", _within("after_finish", 0, _FAR), "NULL"),
        _sane("anchor_at", ":now"),
        _sane("created_at", ":now"),
        "updated_at = :now",
    )
)
_NODE = ", ".join(
    (
        *(_else(column, f"${column} = '{kind}'", empty) for column, kind, empty in (
            ("tasks", "array", "'[]'"), ("services", "object", "'{}'"), ("statistics", "object", "'{}'"),
        )),
        *(_else(column, _within(column, 0, _MANY), "0") for column in ("pid", "slots", "running")),
        # Only for a while: whoever lives says it anew with the next beat.
        *(_sane(column, ":now") for column in ("started_at", "seen_at", "lease_until")),
        _sane_or_none("lost_at", ":now"),
        *(f"{column} = CASE WHEN {column} THEN $yes ELSE $no END" for column in ("draining", "drain")),
    )
)  # fmt: skip

MENDS: dict[str, str | None] = {
    "runs": _RUN,
    "schedules": _SCHEDULE,
    "attempts": ", ".join(
        (
            _sane("started_at", ":now"),
            _sane("finished_at", ":now"),
        )
    ),
    # Paused, not let loose: nobody knows how much it was meant to start.
    "lanes": "paused = $yes, note = :why, rate_count = NULL, rate_per = NULL, rate_from = 0, "
    + _else("max_running", _within("max_running", 0, 2**31 - 1), "0"),
    "sessions": ", ".join(
        (
            _else("max_concurrent", _within("max_concurrent", 1, 2**31 - 1), "1"),
            "throttled = CASE WHEN throttled THEN $yes ELSE $no END",
            _sane_or_none("cutoff_at", ":now"),
            _sane("sent_at", ":now"),
        )
    ),
    "events": None,
    "nodes": _NODE,
    # Its work must not run without its variables: as long as nobody adds it again, that fails and says so.
    "projects": None,
    "tokens": None,
    "login_codes": None,
    "logins": None,
    "audit": _sane("at", ":now"),
}
"""What a row that breaks a rule is changed to, so that it keeps them all; None: it is removed."""
