-- When something of an incident was last changed: the live stream looks for that.
ALTER TABLE incidents ADD COLUMN changed_at BIGINT NOT NULL DEFAULT 0;
CREATE INDEX incidents_changed ON incidents (changed_at);
