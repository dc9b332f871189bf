-- Which rows of outboxes have come into the ledger, and as which run.
CREATE TABLE outbox_ids (
    id     TEXT    NOT NULL PRIMARY KEY,
    run_id INTEGER,
    at     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX outbox_ids_at ON outbox_ids (at);
