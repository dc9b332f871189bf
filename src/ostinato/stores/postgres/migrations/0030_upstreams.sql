-- Schedules that run after others. Who follows whom, by the names in their timings:
ALTER TABLE schedules ADD COLUMN follows boolean NOT NULL DEFAULT FALSE;
CREATE TABLE schedule_upstreams (
    upstream    text   NOT NULL,
    schedule_id bigint NOT NULL REFERENCES schedules (id) ON DELETE CASCADE,
    PRIMARY KEY (upstream, schedule_id)
);
CREATE INDEX schedule_upstreams_of ON schedule_upstreams (schedule_id);

-- What ended, written with the end itself: one row for each follower, whose run_id is the row that answers it.
CREATE TABLE upstream_ends (
    schedule_id  bigint  NOT NULL REFERENCES schedules (id) ON DELETE CASCADE,
    upstream_run bigint  NOT NULL,
    upstream     text    NOT NULL,
    state        text    NOT NULL,
    ended_at     bigint  NOT NULL,
    held         boolean NOT NULL DEFAULT FALSE,
    run_id       bigint REFERENCES runs (id) ON DELETE CASCADE,
    PRIMARY KEY (schedule_id, upstream_run)
);
CREATE INDEX upstream_ends_pending ON upstream_ends (schedule_id, ended_at, upstream_run) WHERE run_id IS NULL;
CREATE INDEX upstream_ends_run ON upstream_ends (run_id) WHERE run_id IS NOT NULL;
CREATE INDEX upstream_ends_upstream ON upstream_ends (upstream_run);
