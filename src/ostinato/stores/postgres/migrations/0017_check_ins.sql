-- Machines check in: a run may come from that (no check forbids it, since 0009), and a schedule has secret keys, known by
-- their hash alone.
CREATE TABLE schedule_keys (
    hash        text   NOT NULL PRIMARY KEY,
    schedule_id bigint NOT NULL REFERENCES schedules (id) ON DELETE CASCADE,
    purpose     text   NOT NULL,
    created_at  bigint NOT NULL
);
CREATE UNIQUE INDEX schedule_keys_purpose ON schedule_keys (schedule_id, purpose);

-- Few, and looked for often: whose check-in is late.
CREATE INDEX schedules_check_in ON schedules (id) WHERE kind = 'check_in';
