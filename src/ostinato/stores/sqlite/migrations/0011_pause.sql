-- A schedule that stays on but does not run for a while is paused: the columns say it by the word that people read.
ALTER TABLE schedules RENAME COLUMN held_since TO paused_since;
ALTER TABLE schedules RENAME COLUMN held_reason TO paused_reason;
ALTER TABLE schedules RENAME COLUMN held_cause TO paused_cause;
