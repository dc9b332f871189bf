-- Schedules that run after others. Who follows whom, by the names in their timings:
ALTER TABLE runs DROP CONSTRAINT runs_known_trigger;
ALTER TABLE runs ADD CONSTRAINT runs_known_trigger CHECK ((trigger = 'schedule' OR trigger = 'manual' OR trigger =
    'catch_up' OR trigger = 'api' OR trigger = 'message' OR trigger = 'check_in' OR trigger = 'after'));

ALTER TABLE schedules ADD COLUMN follows INTEGER NOT NULL DEFAULT 0;
CREATE TABLE schedule_upstreams (
    upstream    TEXT    NOT NULL,
    schedule_id INTEGER NOT NULL REFERENCES schedules (id) ON DELETE CASCADE,
    PRIMARY KEY (upstream, schedule_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX schedule_upstreams_of ON schedule_upstreams (schedule_id);

-- What ended, written with the end itself: one row for each follower, whose run_id is the row that answers it.
CREATE TABLE upstream_ends (
    schedule_id  INTEGER NOT NULL REFERENCES schedules (id) ON DELETE CASCADE,
    upstream_run INTEGER NOT NULL,
    upstream     TEXT    NOT NULL,
    state        TEXT    NOT NULL,
    ended_at     INTEGER NOT NULL,
    held         INTEGER NOT NULL DEFAULT 0,
    run_id       INTEGER REFERENCES runs (id) ON DELETE CASCADE,
    PRIMARY KEY (schedule_id, upstream_run)
) STRICT, WITHOUT ROWID;
CREATE INDEX upstream_ends_pending ON upstream_ends (schedule_id, ended_at, upstream_run) WHERE run_id IS NULL;
CREATE INDEX upstream_ends_run ON upstream_ends (run_id) WHERE run_id IS NOT NULL;
CREATE INDEX upstream_ends_upstream ON upstream_ends (upstream_run);
