-- A key belongs to a task, or to a scope that whoever enqueues names: one active run for each of its keys.
ALTER TABLE runs ADD COLUMN key_scope text COLLATE "C";
UPDATE runs SET key_scope = CASE WHEN key LIKE 'message:%' THEN 'scope:message'
                                 WHEN key LIKE 'backfill:%' THEN 'scope:backfill'
                                 WHEN task IS NOT NULL THEN 'task:' || task
                                 ELSE 'kind:' || kind END
WHERE key IS NOT NULL;
DROP INDEX runs_key;
CREATE UNIQUE INDEX runs_key ON runs (key, key_scope) WHERE key IS NOT NULL AND state IN ('queued', 'running');
