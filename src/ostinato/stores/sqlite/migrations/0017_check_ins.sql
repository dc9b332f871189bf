-- Machines check in: a run may come from that, and a schedule has secret keys, known by their hash alone.
ALTER TABLE runs DROP CONSTRAINT runs_known_trigger;
ALTER TABLE runs ADD CONSTRAINT runs_known_trigger CHECK ((trigger = 'schedule' OR trigger = 'manual' OR trigger =
    'catch_up' OR trigger = 'api' OR trigger = 'message' OR trigger = 'check_in'));

CREATE TABLE schedule_keys (
    hash        TEXT    NOT NULL PRIMARY KEY,
    schedule_id INTEGER NOT NULL REFERENCES schedules (id) ON DELETE CASCADE,
    purpose     TEXT    NOT NULL,
    created_at  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX schedule_keys_purpose ON schedule_keys (schedule_id, purpose);

-- Few, and looked for often: whose check-in is late.
CREATE INDEX schedules_check_in ON schedules (id) WHERE kind = 'check_in';
