-- The ledger. Instants are microseconds since 1970 in UTC; documents are JSON text.

CREATE TABLE schedules (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    name         TEXT    NOT NULL UNIQUE,
    timing       TEXT    NOT NULL,
    zone         TEXT    NOT NULL,
    kind         TEXT    NOT NULL,
    task         TEXT,
    work         TEXT    NOT NULL,
    policy       TEXT    NOT NULL,
    project      TEXT,
    owner        TEXT    NOT NULL,
    origin       TEXT,
    enabled      INTEGER NOT NULL,
    broken       TEXT,
    orphaned     INTEGER NOT NULL DEFAULT 0,
    note         TEXT,
    anchor_at    INTEGER NOT NULL,
    next_at      INTEGER,
    after_finish INTEGER,
    remaining    INTEGER,
    failures     INTEGER NOT NULL DEFAULT 0,
    version      INTEGER NOT NULL DEFAULT 1,
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL
) STRICT;

-- The ticker's index: only what can become due is in it.
CREATE INDEX schedules_next ON schedules (next_at) WHERE next_at IS NOT NULL;

CREATE TABLE runs (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    schedule_id INTEGER REFERENCES schedules (id) ON DELETE CASCADE,
    kind        TEXT    NOT NULL,
    task        TEXT,
    work        TEXT    NOT NULL,
    policy      TEXT    NOT NULL,
    state       TEXT    NOT NULL,
    reason      TEXT,
    trigger     TEXT    NOT NULL,
    due_at      INTEGER NOT NULL,
    last_due_at INTEGER,
    count       INTEGER NOT NULL DEFAULT 1,
    ready_at    INTEGER NOT NULL,
    expires_at  INTEGER,
    started_at  INTEGER,
    finished_at INTEGER,
    attempt     INTEGER NOT NULL DEFAULT 0,
    token       INTEGER NOT NULL DEFAULT 0,
    lane        TEXT    NOT NULL,
    priority    INTEGER NOT NULL DEFAULT 0,
    session     TEXT,
    waiting     INTEGER NOT NULL DEFAULT 0,
    key         TEXT,
    node        TEXT,
    cancel      TEXT,
    totals      TEXT,
    progress    TEXT,
    result      TEXT,
    error       TEXT
) STRICT;

-- The promise: one row for each due time of a schedule.
CREATE UNIQUE INDEX runs_due ON runs (schedule_id, due_at)
    WHERE schedule_id IS NOT NULL AND trigger IN ('schedule', 'catch_up');
CREATE INDEX runs_history ON runs (schedule_id, id) WHERE schedule_id IS NOT NULL;
CREATE INDEX runs_active ON runs (schedule_id, id)
    WHERE schedule_id IS NOT NULL AND state IN ('queued', 'running');

-- The dispatcher's indexes: what may start, what runs, whose turn it is, what may expire.
CREATE INDEX runs_ready ON runs (lane, priority, ready_at, id) WHERE state = 'queued' AND waiting = 0;
CREATE INDEX runs_running ON runs (lane, node) WHERE state = 'running';
CREATE INDEX runs_session ON runs (session, waiting, id) WHERE session IS NOT NULL AND state IN ('queued', 'running');
CREATE INDEX runs_expiring ON runs (expires_at) WHERE state = 'queued' AND expires_at IS NOT NULL;

-- One active run for each key.
CREATE UNIQUE INDEX runs_key ON runs (key) WHERE key IS NOT NULL AND state IN ('queued', 'running');

-- What people look for: everything that did not simply succeed.
CREATE INDEX runs_unhappy ON runs (state, id) WHERE state NOT IN ('succeeded', 'queued', 'running');

-- Earlier attempts; the latest one is in its run's own row.
CREATE TABLE attempts (
    run_id      INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    number      INTEGER NOT NULL,
    started_at  INTEGER NOT NULL,
    finished_at INTEGER NOT NULL,
    state       TEXT    NOT NULL,
    error       TEXT,
    node        TEXT,
    PRIMARY KEY (run_id, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE output (
    run_id INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    part   INTEGER NOT NULL,
    text   TEXT    NOT NULL,
    PRIMARY KEY (run_id, part)
) STRICT, WITHOUT ROWID;

CREATE TABLE lanes (
    name        TEXT PRIMARY KEY,
    max_running INTEGER NOT NULL,
    paused      INTEGER NOT NULL DEFAULT 0,
    note        TEXT
) STRICT, WITHOUT ROWID;

CREATE TABLE nodes (
    id          TEXT PRIMARY KEY,
    host        TEXT    NOT NULL,
    pid         INTEGER NOT NULL,
    slots       INTEGER NOT NULL,
    running     INTEGER NOT NULL,
    draining    INTEGER NOT NULL,
    tasks       TEXT    NOT NULL,
    started_at  INTEGER NOT NULL,
    seen_at     INTEGER NOT NULL,
    lease_until INTEGER NOT NULL,
    lost_at     INTEGER,
    services    TEXT    NOT NULL
) STRICT, WITHOUT ROWID;
