-- Who added a schedule: another person does not replace it unasked. Null where nobody wrote it down.
ALTER TABLE schedules ADD COLUMN made_by TEXT;
