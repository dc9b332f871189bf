-- Who is told of what: channels, rules, incidents, and deliveries, which are written with what they tell.

CREATE TABLE channels (
    name       TEXT   NOT NULL PRIMARY KEY,
    url        TEXT   NOT NULL,
    note       TEXT,
    quiet      TEXT,
    digest     TEXT,
    zone       TEXT   NOT NULL,
    cool_down  INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    retry_at   INTEGER NOT NULL DEFAULT 0,
    failures   INTEGER NOT NULL DEFAULT 0,
    error      TEXT,
    sent_at    INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE rules (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    channel    TEXT   NOT NULL REFERENCES channels (name) ON DELETE CASCADE,
    kinds      TEXT   NOT NULL,
    project    TEXT,
    digest     TEXT,
    zone       TEXT   NOT NULL,
    digest_at  INTEGER,
    created_at INTEGER NOT NULL,
    told_at    INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX rules_scope ON rules (channel, coalesce(project, ''));
CREATE INDEX rules_digest ON rules (digest_at) WHERE digest_at IS NOT NULL;

CREATE TABLE incidents (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    subject       TEXT   NOT NULL,
    cause         TEXT   NOT NULL,
    kind          TEXT   NOT NULL,
    opened_at     INTEGER NOT NULL,
    last_at       INTEGER NOT NULL,
    closed_at     INTEGER,
    count         INTEGER NOT NULL,
    reopened      INTEGER NOT NULL DEFAULT 0,
    reason        TEXT,
    first_run     INTEGER,
    last_run      INTEGER,
    schedule      TEXT,
    project       TEXT,
    closed_reason TEXT,
    acked_at      INTEGER,
    acked_by      TEXT,
    note          TEXT
) STRICT;
CREATE UNIQUE INDEX incidents_open ON incidents (subject, cause) WHERE closed_at IS NULL;
CREATE INDEX incidents_closed ON incidents (subject, cause, closed_at) WHERE closed_at IS NOT NULL;
CREATE INDEX incidents_old ON incidents (closed_at) WHERE closed_at IS NOT NULL;

CREATE TABLE deliveries (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    key         TEXT   NOT NULL,
    at          INTEGER NOT NULL,
    channel     TEXT   NOT NULL,
    kind        TEXT   NOT NULL,
    subject     TEXT   NOT NULL,
    state       TEXT   NOT NULL DEFAULT 'pending',
    ready_at    INTEGER NOT NULL,
    attempts    INTEGER NOT NULL DEFAULT 0,
    incident_id INTEGER REFERENCES incidents (id) ON DELETE CASCADE,
    run_id      INTEGER,
    schedule    TEXT,
    data        TEXT   NOT NULL DEFAULT '{}',
    message     TEXT,
    node        TEXT,
    sent_at     INTEGER,
    error       TEXT
) STRICT;
CREATE INDEX deliveries_pending ON deliveries (channel, ready_at) WHERE state = 'pending';
CREATE INDEX deliveries_sending ON deliveries (channel) WHERE state = 'sending';
CREATE INDEX deliveries_sent ON deliveries (channel, sent_at) WHERE state = 'sent';
CREATE INDEX deliveries_incident ON deliveries (incident_id) WHERE incident_id IS NOT NULL;
CREATE INDEX deliveries_at ON deliveries (at);

-- What one node of all does, for as long as it says so.
CREATE TABLE leases (
    name  TEXT   NOT NULL PRIMARY KEY,
    node  TEXT   NOT NULL,
    until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- When it must have succeeded again; NULL if nobody asked for that, or if it was told that it has not.
ALTER TABLE schedules ADD COLUMN fresh_at INTEGER;
CREATE INDEX schedules_fresh ON schedules (fresh_at) WHERE fresh_at IS NOT NULL;
