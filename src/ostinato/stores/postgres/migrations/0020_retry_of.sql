-- A run that repeats another one by hand says which: what became of it is found without a guess.
ALTER TABLE runs ADD COLUMN retry_of bigint;
CREATE INDEX runs_retry_of ON runs (retry_of) WHERE retry_of IS NOT NULL;
