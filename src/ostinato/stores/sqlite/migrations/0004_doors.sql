-- What the doors need: tokens, logins, the audit log, answers to repeated requests, and indexes for people's lists.

CREATE TABLE tokens (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    name       TEXT    NOT NULL UNIQUE,
    role       TEXT    NOT NULL,
    owner      TEXT    NOT NULL,
    hash       TEXT    NOT NULL UNIQUE,
    created_at INTEGER NOT NULL,
    used_at    INTEGER,
    expires_at INTEGER
) STRICT;

-- What was made with a token goes with it.
CREATE TABLE login_codes (
    hash       TEXT PRIMARY KEY,
    who        TEXT    NOT NULL,
    role       TEXT    NOT NULL,
    token_id   INTEGER REFERENCES tokens (id) ON DELETE CASCADE,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX login_codes_token ON login_codes (token_id) WHERE token_id IS NOT NULL;

CREATE TABLE logins (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    hash       TEXT    NOT NULL UNIQUE,
    who        TEXT    NOT NULL,
    role       TEXT    NOT NULL,
    token_id   INTEGER REFERENCES tokens (id) ON DELETE CASCADE,
    created_at INTEGER NOT NULL,
    used_at    INTEGER,
    expires_at INTEGER NOT NULL
) STRICT;
CREATE INDEX logins_token ON logins (token_id) WHERE token_id IS NOT NULL;

CREATE TABLE audit (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    at      INTEGER NOT NULL,
    who     TEXT    NOT NULL,
    door    TEXT    NOT NULL,
    address TEXT,
    verb    TEXT    NOT NULL,
    object  TEXT    NOT NULL,
    detail  TEXT    NOT NULL
) STRICT;
CREATE INDEX audit_at ON audit (at);
CREATE INDEX audit_object ON audit (object, id);
CREATE INDEX audit_removed ON audit (id) WHERE verb = 'schedule.remove';

-- One row for each Idempotency-Key; without a status its request is under way.
CREATE TABLE requests (
    who         TEXT    NOT NULL,
    key         TEXT    NOT NULL,
    fingerprint TEXT    NOT NULL,
    begun_at    INTEGER NOT NULL,
    status      INTEGER,
    headers     TEXT,
    body        BLOB,
    PRIMARY KEY (who, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX requests_begun ON requests (begun_at);

ALTER TABLE nodes ADD COLUMN statistics TEXT NOT NULL DEFAULT '{}';
ALTER TABLE nodes ADD COLUMN drain INTEGER NOT NULL DEFAULT 0;

-- Why it was switched off, apart from its own note, which was both before.
ALTER TABLE schedules ADD COLUMN off_note TEXT;
UPDATE schedules SET off_note = note WHERE enabled = 0 AND broken IS NULL;

-- What ended when: the counts of a day are made from this alone.
CREATE INDEX runs_finished ON runs (finished_at, state, started_at, due_at) WHERE finished_at IS NOT NULL;

-- The ticker's index, which serves pages in the same order: schedules of one due time go by name.
DROP INDEX schedules_next;
CREATE INDEX schedules_next ON schedules (next_at, name) WHERE next_at IS NOT NULL;
CREATE INDEX schedules_resting ON schedules (name) WHERE next_at IS NULL;
CREATE INDEX schedules_aside ON schedules (name) WHERE enabled = 0 OR broken IS NOT NULL OR orphaned = 1;
CREATE INDEX schedules_updated ON schedules (updated_at);
CREATE INDEX schedules_task ON schedules (task) WHERE task IS NOT NULL;
