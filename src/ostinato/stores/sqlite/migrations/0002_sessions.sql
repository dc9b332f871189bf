-- Sessions as mailboxes, rates of lanes, and the events of both.

-- How a run stands in its session, whether messages may still join it, and whether it queues up only when it is ready.
ALTER TABLE runs ADD COLUMN mode TEXT;
ALTER TABLE runs ADD COLUMN burst INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN later INTEGER NOT NULL DEFAULT 0;

-- Bursts that have their turn: a few at a time, looked at by every claim.
CREATE INDEX runs_burst ON runs (ready_at) WHERE state = 'queued' AND waiting = 0 AND burst = 1;

CREATE INDEX runs_later ON runs (ready_at) WHERE state = 'queued' AND waiting = 1 AND later = 1;

-- What became of a session's messages.
CREATE INDEX runs_mailbox ON runs (session, id) WHERE session IS NOT NULL AND mode IS NOT NULL;

-- A message that is sent twice is found by its key, whatever became of it.
CREATE INDEX runs_message ON runs (key) WHERE mode IS NOT NULL AND key IS NOT NULL;

-- A token bucket: `rate_count` starts in `rate_per` microseconds; it was empty at `rate_from`.
ALTER TABLE lanes ADD COLUMN rate_count INTEGER;
ALTER TABLE lanes ADD COLUMN rate_per INTEGER;
ALTER TABLE lanes ADD COLUMN rate_from INTEGER NOT NULL DEFAULT 0;

CREATE TABLE sessions (
    key            TEXT PRIMARY KEY,
    max_concurrent INTEGER NOT NULL DEFAULT 1,
    throttled      INTEGER NOT NULL DEFAULT 0,
    cutoff_at      INTEGER,
    sent_at        INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_sent ON sessions (sent_at);

CREATE TABLE events (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    at      INTEGER NOT NULL,
    kind    TEXT    NOT NULL,
    session TEXT    NOT NULL,
    run_id  INTEGER,
    data    TEXT
) STRICT;
CREATE INDEX events_session ON events (session, id);
CREATE INDEX events_at ON events (at);
