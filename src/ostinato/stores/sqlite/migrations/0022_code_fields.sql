-- Whose word counts for a schedule that code declares: what the code says of each field and since when, and which of them
-- a person has changed. NULL where there is no record: the next start of the code makes one.
ALTER TABLE schedules ADD COLUMN declared TEXT;
ALTER TABLE schedules ADD COLUMN overrides TEXT;
