-- Who paused a lane or switched a schedule off, and when: with the note, what everybody is told who asks what holds up
-- their work. NULL where code did it, or an older version.
ALTER TABLE lanes ADD COLUMN paused_by TEXT;
ALTER TABLE lanes ADD COLUMN paused_at bigint;
ALTER TABLE schedules ADD COLUMN off_by TEXT;
ALTER TABLE schedules ADD COLUMN off_at bigint;
