-- The run that waits for this one and lends it its slot in their lane, while that is full.
ALTER TABLE runs ADD COLUMN slot_of bigint;
CREATE INDEX runs_lent ON runs (state, lane, slot_of) WHERE slot_of IS NOT NULL;
