-- When something of an incident was last changed, and when it was last opened or closed, as of the writing: the live stream
-- looks for that.
ALTER TABLE incidents ADD COLUMN changed_at BIGINT NOT NULL DEFAULT 0;
ALTER TABLE incidents ADD COLUMN turned_at BIGINT NOT NULL DEFAULT 0;
CREATE INDEX incidents_changed ON incidents (changed_at);

-- As they are listed: those that are open first.
CREATE INDEX incidents_newest_open ON incidents (id) WHERE closed_at IS NULL;
CREATE INDEX incidents_newest_closed ON incidents (id) WHERE closed_at IS NOT NULL;
