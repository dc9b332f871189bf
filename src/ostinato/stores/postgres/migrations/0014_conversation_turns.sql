-- The turn of a named conversation is the session of that name, where messages are sent too: what waits in the session
-- that the agent's command line had for it goes there. Whatever had its turn keeps it. The old session is forgotten as
-- any other that nobody uses.
INSERT INTO sessions (key, max_concurrent, throttled, cutoff_at, sent_at)
SELECT substr(key, position('/session:' IN key) + 9), max_concurrent, throttled, cutoff_at, sent_at FROM sessions
WHERE key LIKE 'agent:_%/session:_%' AND key NOT LIKE 'agent:%/session:schedule:%'
  AND EXISTS (SELECT 1 FROM runs WHERE session = sessions.key AND state IN ('queued', 'running') AND kind = 'agent')
ORDER BY sent_at DESC
ON CONFLICT (key) DO NOTHING;

UPDATE runs SET session = substr(session, position('/session:' IN session) + 9)
WHERE session IS NOT NULL AND state IN ('queued', 'running') AND kind = 'agent'
  AND session LIKE 'agent:_%/session:_%' AND session NOT LIKE 'agent:%/session:schedule:%';

-- Queued runs that a process starts itself when their turn comes: looked for when a node is lost.
CREATE INDEX runs_bound ON runs (node) WHERE state = 'queued' AND node IS NOT NULL;
