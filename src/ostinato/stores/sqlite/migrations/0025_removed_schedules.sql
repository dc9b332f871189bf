-- The runs of a schedule that was deleted after its run (delete_after_run) stay until retention: the name it had, and no
-- schedule_id. NULL for all others.
ALTER TABLE runs ADD COLUMN schedule_name TEXT;
CREATE INDEX runs_of_removed ON runs (schedule_name, id) WHERE schedule_name IS NOT NULL;
