-- Chains: which runs a run waits for. How each of those ended is written here with the end itself.
CREATE TABLE run_upstreams (
    run_id       bigint  NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    place        integer NOT NULL,
    upstream_run bigint  NOT NULL,
    upstream     text    NOT NULL,
    state        text,
    ended_at     bigint,
    PRIMARY KEY (run_id, place)
);
CREATE INDEX run_upstreams_pending ON run_upstreams (run_id) WHERE state IS NULL;
CREATE INDEX run_upstreams_upstream ON run_upstreams (upstream_run, run_id);

-- Whether others wait for its end.
ALTER TABLE runs ADD COLUMN followed boolean NOT NULL DEFAULT FALSE;
