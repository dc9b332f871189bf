-- Which rows of outboxes have come into the ledger, and as which run.
CREATE TABLE outbox_ids (
    id     text   COLLATE "C" NOT NULL PRIMARY KEY,
    run_id bigint,
    at     bigint NOT NULL
);
CREATE INDEX outbox_ids_at ON outbox_ids (at);
