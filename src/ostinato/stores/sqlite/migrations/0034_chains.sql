-- Chains: which runs a run waits for. How each of those ended is written here with the end itself.
CREATE TABLE run_upstreams (
    run_id       INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    place        INTEGER NOT NULL,
    upstream_run INTEGER NOT NULL,
    upstream     TEXT    NOT NULL,
    state        TEXT,
    ended_at     INTEGER,
    PRIMARY KEY (run_id, place)
) STRICT, WITHOUT ROWID;
CREATE INDEX run_upstreams_pending ON run_upstreams (run_id) WHERE state IS NULL;
CREATE INDEX run_upstreams_upstream ON run_upstreams (upstream_run, run_id);

-- Whether others wait for its end.
ALTER TABLE runs ADD COLUMN followed INTEGER NOT NULL DEFAULT 0;
