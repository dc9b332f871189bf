-- Who asked for a run, and who asked for its end, by the name that the audit log has; NULL for what no person did.
ALTER TABLE runs ADD COLUMN started_by text;
ALTER TABLE runs ADD COLUMN cancelled_by text;
