-- Rules for every row, and a place for what breaks them: a bad row is ended, switched off, mended or removed, and what
-- it said is kept here. stores/rules.py has the same rules for what comes past the checks.

CREATE TABLE quarantine (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    table_name TEXT    NOT NULL,
    row_key    TEXT    NOT NULL,
    reason     TEXT    NOT NULL,
    at         INTEGER NOT NULL,
    content    TEXT    NOT NULL
) STRICT;

-- A run that has not ended is over: it failed, and says why. One whose due time cannot be kept counts as by hand.
CREATE TABLE bad AS SELECT * FROM (
    SELECT id AS row_key, CAST(unixepoch('subsec') * 1000000 AS INTEGER) AS found_at, CASE
        WHEN NOT ((state = 'queued' OR state = 'running' OR state = 'succeeded' OR state = 'failed' OR state =
            'cancelled' OR state = 'skipped' OR state = 'missed' OR state = 'expired' OR state = 'superseded')) THEN
            'its state is unknown'
        WHEN NOT ((trigger = 'schedule' OR trigger = 'manual' OR trigger = 'catch_up' OR trigger = 'api' OR trigger =
            'message')) THEN 'its trigger is unknown'
        WHEN NOT ((mode = 'queue' OR mode = 'followup' OR mode = 'interrupt')) THEN 'its mode is unknown'
        WHEN NOT (state <> 'running' OR (attempt >= 1 AND started_at IS NOT NULL)) THEN
            'it is running and has never started'
        WHEN NOT (state IN ('queued', 'running') OR finished_at IS NOT NULL) THEN 'it has ended at no time'
        WHEN NOT (token BETWEEN 0 AND 4000000000000000000 AND attempt BETWEEN 0 AND 1000000000000000) THEN
            'one of its numbers is out of range'
        WHEN NOT (count BETWEEN 1 AND 1000000000000000 AND priority BETWEEN -1000000000000 AND 1000000000000) THEN
            'one of its numbers is out of range'
        WHEN NOT (due_at BETWEEN -4000000000000000000 AND 4000000000000000000 AND last_due_at BETWEEN
            -4000000000000000000 AND 4000000000000000000 AND expires_at BETWEEN -4000000000000000000 AND
            4000000000000000000) THEN 'one of its times is out of range'
        WHEN NOT (ready_at BETWEEN -4000000000000000000 AND 4000000000000000000 AND started_at BETWEEN
            -4000000000000000000 AND 4000000000000000000 AND finished_at BETWEEN -4000000000000000000 AND
            4000000000000000000) THEN 'one of its times is out of range'
        WHEN NOT (waiting BETWEEN 0 AND 1 AND burst BETWEEN 0 AND 1 AND later BETWEEN 0 AND 1) THEN
            'one of its switches is neither on nor off'
    END AS why FROM runs
) found WHERE why IS NOT NULL;
INSERT INTO quarantine (table_name, row_key, reason, at, content)
SELECT 'runs', CAST(bad.row_key AS TEXT), why, found_at, json_object('id', id, 'schedule_id', schedule_id, 'kind',
    kind, 'task', task, 'work', work, 'policy', policy, 'state', state, 'reason', reason, 'trigger', trigger,
    'due_at', due_at, 'last_due_at', last_due_at, 'count', count, 'ready_at', ready_at, 'expires_at', expires_at,
    'started_at', started_at, 'finished_at', finished_at, 'attempt', attempt, 'token', token, 'lane', lane,
    'priority', priority, 'session', session, 'waiting', waiting, 'key', key, 'node', node, 'cancel', cancel,
    'totals', totals, 'progress', progress, 'result', result, 'error', error, 'mode', mode, 'burst', burst, 'later',
    later, 'project', project, 'budget_day', budget_day, 'reserved', reserved)
FROM runs r JOIN bad ON bad.row_key = r.id;
UPDATE runs SET
    reason = CASE WHEN (state = 'succeeded' OR state = 'failed' OR state = 'cancelled' OR state = 'skipped' OR state =
        'missed' OR state = 'expired' OR state = 'superseded') THEN reason ELSE 'its row could not be read: ' || why
        END,
    state = CASE WHEN (state = 'succeeded' OR state = 'failed' OR state = 'cancelled' OR state = 'skipped' OR state =
        'missed' OR state = 'expired' OR state = 'superseded') THEN state ELSE 'failed' END,
    finished_at = CASE WHEN (state = 'succeeded' OR state = 'failed' OR state = 'cancelled' OR state = 'skipped' OR
        state = 'missed' OR state = 'expired' OR state = 'superseded') AND finished_at BETWEEN -4000000000000000000
        AND 4000000000000000000 THEN finished_at ELSE found_at END,
    trigger = CASE WHEN (trigger = 'schedule' OR trigger = 'manual' OR trigger = 'catch_up' OR trigger = 'api' OR
        trigger = 'message') AND due_at BETWEEN -4000000000000000000 AND 4000000000000000000 THEN trigger ELSE
        'manual' END,
    due_at = CASE WHEN due_at BETWEEN -4000000000000000000 AND 4000000000000000000 THEN due_at ELSE found_at END,
    ready_at = CASE WHEN ready_at BETWEEN -4000000000000000000 AND 4000000000000000000 THEN ready_at ELSE found_at END,
    last_due_at = CASE WHEN last_due_at BETWEEN -4000000000000000000 AND 4000000000000000000 THEN last_due_at ELSE
        NULL END,
    expires_at = CASE WHEN expires_at BETWEEN -4000000000000000000 AND 4000000000000000000 THEN expires_at ELSE NULL
        END,
    started_at = CASE WHEN started_at BETWEEN -4000000000000000000 AND 4000000000000000000 THEN started_at ELSE NULL
        END,
    mode = CASE WHEN (mode = 'queue' OR mode = 'followup' OR mode = 'interrupt') THEN mode ELSE NULL END,
    token = CASE WHEN token BETWEEN 0 AND 4000000000000000000 THEN token ELSE 0 END,
    attempt = CASE WHEN attempt BETWEEN 0 AND 1000000000000000 THEN attempt ELSE 0 END,
    count = CASE WHEN count BETWEEN 1 AND 1000000000000000 THEN count ELSE 1 END,
    priority = CASE WHEN priority BETWEEN -1000000000000 AND 1000000000000 THEN priority ELSE 0 END,
    waiting = 0,
    burst = 0,
    later = 0
FROM bad WHERE bad.row_key = runs.id;
DROP TABLE bad;
ALTER TABLE runs ADD CONSTRAINT runs_known_state CHECK ((state = 'queued' OR state = 'running' OR state = 'succeeded'
    OR state = 'failed' OR state = 'cancelled' OR state = 'skipped' OR state = 'missed' OR state = 'expired' OR state
    = 'superseded'));
ALTER TABLE runs ADD CONSTRAINT runs_known_trigger CHECK ((trigger = 'schedule' OR trigger = 'manual' OR trigger =
    'catch_up' OR trigger = 'api' OR trigger = 'message'));
ALTER TABLE runs ADD CONSTRAINT runs_known_mode CHECK ((mode = 'queue' OR mode = 'followup' OR mode = 'interrupt'));
ALTER TABLE runs ADD CONSTRAINT runs_started CHECK (state <> 'running' OR (attempt >= 1 AND started_at IS NOT NULL));
ALTER TABLE runs ADD CONSTRAINT runs_finished_at CHECK (state IN ('queued', 'running') OR finished_at IS NOT NULL);
ALTER TABLE runs ADD CONSTRAINT runs_token CHECK (token BETWEEN 0 AND 4000000000000000000 AND attempt BETWEEN 0 AND
    1000000000000000);
ALTER TABLE runs ADD CONSTRAINT runs_numbers CHECK (count BETWEEN 1 AND 1000000000000000 AND priority BETWEEN
    -1000000000000 AND 1000000000000);
ALTER TABLE runs ADD CONSTRAINT runs_due_times CHECK (due_at BETWEEN -4000000000000000000 AND 4000000000000000000 AND
    last_due_at BETWEEN -4000000000000000000 AND 4000000000000000000 AND expires_at BETWEEN -4000000000000000000 AND
    4000000000000000000);
ALTER TABLE runs ADD CONSTRAINT runs_instants CHECK (ready_at BETWEEN -4000000000000000000 AND 4000000000000000000 AND
    started_at BETWEEN -4000000000000000000 AND 4000000000000000000 AND finished_at BETWEEN -4000000000000000000 AND
    4000000000000000000);
ALTER TABLE runs ADD CONSTRAINT runs_switches CHECK (waiting BETWEEN 0 AND 1 AND burst BETWEEN 0 AND 1 AND later
    BETWEEN 0 AND 1);

-- A schedule is broken, and off until somebody enables it.
CREATE TABLE bad AS SELECT * FROM (
    SELECT id AS row_key, CAST(unixepoch('subsec') * 1000000 AS INTEGER) AS found_at, CASE
        WHEN NOT (remaining BETWEEN 0 AND 1000000000000000 AND failures BETWEEN 0 AND 1000000000000000 AND version
            BETWEEN 1 AND 1000000000000000 AND after_finish BETWEEN 0 AND 4000000000000000000) THEN
            'one of its numbers is out of range'
        WHEN NOT (anchor_at BETWEEN -4000000000000000000 AND 4000000000000000000 AND next_at BETWEEN
            -4000000000000000000 AND 4000000000000000000 AND held_since BETWEEN -4000000000000000000 AND
            4000000000000000000 AND created_at BETWEEN -4000000000000000000 AND 4000000000000000000 AND updated_at
            BETWEEN -4000000000000000000 AND 4000000000000000000) THEN 'one of its times is out of range'
        WHEN NOT (enabled BETWEEN 0 AND 1 AND orphaned BETWEEN 0 AND 1) THEN
            'one of its switches is neither on nor off'
    END AS why FROM schedules
) found WHERE why IS NOT NULL;
INSERT INTO quarantine (table_name, row_key, reason, at, content)
SELECT 'schedules', CAST(bad.row_key AS TEXT), why, found_at, json_object('id', id, 'name', name, 'timing', timing,
    'zone', zone, 'kind', kind, 'task', task, 'work', work, 'policy', policy, 'project', project, 'owner', owner,
    'origin', origin, 'enabled', enabled, 'broken', broken, 'orphaned', orphaned, 'note', note, 'anchor_at',
    anchor_at, 'next_at', next_at, 'after_finish', after_finish, 'remaining', remaining, 'failures', failures,
    'version', version, 'created_at', created_at, 'updated_at', updated_at, 'held_since', held_since, 'held_reason',
    held_reason, 'off_note', off_note)
FROM schedules r JOIN bad ON bad.row_key = r.id;
UPDATE schedules SET
    enabled = 0,
    broken = 'its row could not be read: ' || why,
    next_at = NULL,
    held_since = NULL,
    held_reason = NULL,
    orphaned = CASE WHEN orphaned THEN 1 ELSE 0 END,
    remaining = CASE WHEN remaining BETWEEN 0 AND 1000000000000000 THEN remaining ELSE NULL END,
    failures = CASE WHEN failures BETWEEN 0 AND 1000000000000000 THEN failures ELSE 0 END,
    version = CASE WHEN version BETWEEN 1 AND 999999999999999 THEN version + 1 ELSE 1 END,
    after_finish = CASE WHEN after_finish BETWEEN 0 AND 4000000000000000000 THEN after_finish ELSE NULL END,
    anchor_at = CASE WHEN anchor_at BETWEEN -4000000000000000000 AND 4000000000000000000 THEN anchor_at ELSE found_at
        END,
    created_at = CASE WHEN created_at BETWEEN -4000000000000000000 AND 4000000000000000000 THEN created_at ELSE
        found_at END,
    updated_at = found_at
FROM bad WHERE bad.row_key = schedules.id;
DROP TABLE bad;
ALTER TABLE schedules ADD CONSTRAINT schedules_numbers CHECK (remaining BETWEEN 0 AND 1000000000000000 AND failures
    BETWEEN 0 AND 1000000000000000 AND version BETWEEN 1 AND 1000000000000000 AND after_finish BETWEEN 0 AND
    4000000000000000000);
ALTER TABLE schedules ADD CONSTRAINT schedules_instants CHECK (anchor_at BETWEEN -4000000000000000000 AND
    4000000000000000000 AND next_at BETWEEN -4000000000000000000 AND 4000000000000000000 AND held_since BETWEEN
    -4000000000000000000 AND 4000000000000000000 AND created_at BETWEEN -4000000000000000000 AND 4000000000000000000
    AND updated_at BETWEEN -4000000000000000000 AND 4000000000000000000);
ALTER TABLE schedules ADD CONSTRAINT schedules_switches CHECK (enabled BETWEEN 0 AND 1 AND orphaned BETWEEN 0 AND 1);

-- Attempts, sessions and the audit log keep what can be kept.
CREATE TABLE bad AS SELECT * FROM (
    SELECT concat(run_id, '/', number) AS row_key, CAST(unixepoch('subsec') * 1000000 AS INTEGER) AS found_at, CASE
        WHEN NOT (started_at BETWEEN -4000000000000000000 AND 4000000000000000000 AND finished_at BETWEEN
            -4000000000000000000 AND 4000000000000000000) THEN 'one of its times is out of range'
    END AS why FROM attempts
) found WHERE why IS NOT NULL;
INSERT INTO quarantine (table_name, row_key, reason, at, content)
SELECT 'attempts', CAST(bad.row_key AS TEXT), why, found_at, json_object('run_id', run_id, 'number', number,
    'started_at', started_at, 'finished_at', finished_at, 'state', state, 'error', error, 'node', node)
FROM attempts r JOIN bad ON bad.row_key = concat(r.run_id, '/', r.number);
UPDATE attempts SET
    started_at = CASE WHEN started_at BETWEEN -4000000000000000000 AND 4000000000000000000 THEN started_at ELSE
        found_at END,
    finished_at = CASE WHEN finished_at BETWEEN -4000000000000000000 AND 4000000000000000000 THEN finished_at ELSE
        found_at END
FROM bad WHERE bad.row_key = concat(run_id, '/', number);
DROP TABLE bad;
ALTER TABLE attempts ADD CONSTRAINT attempts_instants CHECK (started_at BETWEEN -4000000000000000000 AND
    4000000000000000000 AND finished_at BETWEEN -4000000000000000000 AND 4000000000000000000);

-- A lane is paused, not let loose: nobody knows how much it was meant to start.
CREATE TABLE bad AS SELECT * FROM (
    SELECT name AS row_key, CAST(unixepoch('subsec') * 1000000 AS INTEGER) AS found_at, CASE
        WHEN NOT (max_running BETWEEN 0 AND 2147483647) THEN 'its limit is out of range'
        WHEN NOT ((rate_count IS NULL AND rate_per IS NULL) OR (coalesce(rate_count, 0) BETWEEN 1 AND 1000000 AND
            coalesce(rate_per, 0) BETWEEN 1 AND 31622400000000)) THEN 'its rate is not a rate'
        WHEN NOT (rate_from BETWEEN -4000000000000000000 AND 4000000000000000000) THEN
            'one of its times is out of range'
        WHEN NOT (paused BETWEEN 0 AND 1) THEN 'one of its switches is neither on nor off'
    END AS why FROM lanes
) found WHERE why IS NOT NULL;
INSERT INTO quarantine (table_name, row_key, reason, at, content)
SELECT 'lanes', CAST(bad.row_key AS TEXT), why, found_at, json_object('name', name, 'max_running', max_running,
    'paused', paused, 'note', note, 'rate_count', rate_count, 'rate_per', rate_per, 'rate_from', rate_from)
FROM lanes r JOIN bad ON bad.row_key = r.name;
UPDATE lanes SET
    paused = 1,
    note = 'its row could not be read: ' || why,
    rate_count = NULL,
    rate_per = NULL,
    rate_from = 0,
    max_running = CASE WHEN max_running BETWEEN 0 AND 2147483647 THEN max_running ELSE 0 END
FROM bad WHERE bad.row_key = lanes.name;
DROP TABLE bad;
ALTER TABLE lanes ADD CONSTRAINT lanes_limit CHECK (max_running BETWEEN 0 AND 2147483647);
ALTER TABLE lanes ADD CONSTRAINT lanes_rate CHECK ((rate_count IS NULL AND rate_per IS NULL) OR (coalesce(rate_count,
    0) BETWEEN 1 AND 1000000 AND coalesce(rate_per, 0) BETWEEN 1 AND 31622400000000));
ALTER TABLE lanes ADD CONSTRAINT lanes_instants CHECK (rate_from BETWEEN -4000000000000000000 AND
    4000000000000000000);
ALTER TABLE lanes ADD CONSTRAINT lanes_switches CHECK (paused BETWEEN 0 AND 1);

CREATE TABLE bad AS SELECT * FROM (
    SELECT key AS row_key, CAST(unixepoch('subsec') * 1000000 AS INTEGER) AS found_at, CASE
        WHEN NOT (max_concurrent BETWEEN 1 AND 2147483647) THEN 'one of its numbers is out of range'
        WHEN NOT (cutoff_at BETWEEN -4000000000000000000 AND 4000000000000000000 AND sent_at BETWEEN
            -4000000000000000000 AND 4000000000000000000) THEN 'one of its times is out of range'
        WHEN NOT (throttled BETWEEN 0 AND 1) THEN 'one of its switches is neither on nor off'
    END AS why FROM sessions
) found WHERE why IS NOT NULL;
INSERT INTO quarantine (table_name, row_key, reason, at, content)
SELECT 'sessions', CAST(bad.row_key AS TEXT), why, found_at, json_object('key', key, 'max_concurrent', max_concurrent,
    'throttled', throttled, 'cutoff_at', cutoff_at, 'sent_at', sent_at)
FROM sessions r JOIN bad ON bad.row_key = r.key;
UPDATE sessions SET
    max_concurrent = CASE WHEN max_concurrent BETWEEN 1 AND 2147483647 THEN max_concurrent ELSE 1 END,
    throttled = CASE WHEN throttled THEN 1 ELSE 0 END,
    cutoff_at = CASE WHEN cutoff_at IS NULL OR cutoff_at BETWEEN -4000000000000000000 AND 4000000000000000000 THEN
        cutoff_at ELSE found_at END,
    sent_at = CASE WHEN sent_at BETWEEN -4000000000000000000 AND 4000000000000000000 THEN sent_at ELSE found_at END
FROM bad WHERE bad.row_key = sessions.key;
DROP TABLE bad;
ALTER TABLE sessions ADD CONSTRAINT sessions_limit CHECK (max_concurrent BETWEEN 1 AND 2147483647);
ALTER TABLE sessions ADD CONSTRAINT sessions_instants CHECK (cutoff_at BETWEEN -4000000000000000000 AND
    4000000000000000000 AND sent_at BETWEEN -4000000000000000000 AND 4000000000000000000);
ALTER TABLE sessions ADD CONSTRAINT sessions_switches CHECK (throttled BETWEEN 0 AND 1);

-- An event that nobody understands goes.
CREATE TABLE bad AS SELECT * FROM (
    SELECT id AS row_key, CAST(unixepoch('subsec') * 1000000 AS INTEGER) AS found_at, CASE
        WHEN NOT ((kind = 'enqueued' OR kind = 'debounced' OR kind = 'dropped' OR kind = 'started' OR kind =
            'finished' OR kind = 'stopped')) THEN 'its kind is unknown'
        WHEN NOT (at BETWEEN -4000000000000000000 AND 4000000000000000000) THEN 'one of its times is out of range'
    END AS why FROM events
) found WHERE why IS NOT NULL;
INSERT INTO quarantine (table_name, row_key, reason, at, content)
SELECT 'events', CAST(bad.row_key AS TEXT), why, found_at, json_object('id', id, 'at', at, 'kind', kind, 'session',
    session, 'run_id', run_id, 'data', data)
FROM events r JOIN bad ON bad.row_key = r.id;
DELETE FROM events WHERE id IN (SELECT row_key FROM bad);
DROP TABLE bad;
ALTER TABLE events ADD CONSTRAINT events_known_kind CHECK ((kind = 'enqueued' OR kind = 'debounced' OR kind =
    'dropped' OR kind = 'started' OR kind = 'finished' OR kind = 'stopped'));
ALTER TABLE events ADD CONSTRAINT events_instants CHECK (at BETWEEN -4000000000000000000 AND 4000000000000000000);

-- A node says what it is anew with its next beat.
CREATE TABLE bad AS SELECT * FROM (
    SELECT id AS row_key, CAST(unixepoch('subsec') * 1000000 AS INTEGER) AS found_at, CASE
        WHEN NOT (CASE WHEN json_valid(tasks) THEN json_type(tasks) ELSE 'none' END = 'array' AND CASE WHEN
            json_valid(services) THEN json_type(services) ELSE 'none' END = 'object' AND CASE WHEN
            json_valid(statistics) THEN json_type(statistics) ELSE 'none' END = 'object') THEN
            'one of its documents is not JSON'
        WHEN NOT (pid BETWEEN 0 AND 1000000000000000 AND slots BETWEEN 0 AND 1000000000000000 AND running BETWEEN 0
            AND 1000000000000000) THEN 'one of its numbers is out of range'
        WHEN NOT (started_at BETWEEN -4000000000000000000 AND 4000000000000000000 AND seen_at BETWEEN
            -4000000000000000000 AND 4000000000000000000 AND lease_until BETWEEN -4000000000000000000 AND
            4000000000000000000 AND lost_at BETWEEN -4000000000000000000 AND 4000000000000000000) THEN
            'one of its times is out of range'
        WHEN NOT (draining BETWEEN 0 AND 1 AND drain BETWEEN 0 AND 1) THEN 'one of its switches is neither on nor off'
    END AS why FROM nodes
) found WHERE why IS NOT NULL;
INSERT INTO quarantine (table_name, row_key, reason, at, content)
SELECT 'nodes', CAST(bad.row_key AS TEXT), why, found_at, json_object('id', id, 'host', host, 'pid', pid, 'slots',
    slots, 'running', running, 'draining', draining, 'tasks', tasks, 'started_at', started_at, 'seen_at', seen_at,
    'lease_until', lease_until, 'lost_at', lost_at, 'services', services, 'statistics', statistics, 'drain', drain)
FROM nodes r JOIN bad ON bad.row_key = r.id;
UPDATE nodes SET
    tasks = CASE WHEN CASE WHEN json_valid(tasks) THEN json_type(tasks) ELSE 'none' END = 'array' THEN tasks ELSE '[]'
        END,
    services = CASE WHEN CASE WHEN json_valid(services) THEN json_type(services) ELSE 'none' END = 'object' THEN
        services ELSE '{}' END,
    statistics = CASE WHEN CASE WHEN json_valid(statistics) THEN json_type(statistics) ELSE 'none' END = 'object' THEN
        statistics ELSE '{}' END,
    pid = CASE WHEN pid BETWEEN 0 AND 1000000000000000 THEN pid ELSE 0 END,
    slots = CASE WHEN slots BETWEEN 0 AND 1000000000000000 THEN slots ELSE 0 END,
    running = CASE WHEN running BETWEEN 0 AND 1000000000000000 THEN running ELSE 0 END,
    started_at = CASE WHEN started_at BETWEEN -4000000000000000000 AND 4000000000000000000 THEN started_at ELSE
        found_at END,
    seen_at = CASE WHEN seen_at BETWEEN -4000000000000000000 AND 4000000000000000000 THEN seen_at ELSE found_at END,
    lease_until = CASE WHEN lease_until BETWEEN -4000000000000000000 AND 4000000000000000000 THEN lease_until ELSE
        found_at END,
    lost_at = CASE WHEN lost_at IS NULL OR lost_at BETWEEN -4000000000000000000 AND 4000000000000000000 THEN lost_at
        ELSE found_at END,
    draining = CASE WHEN draining THEN 1 ELSE 0 END,
    drain = CASE WHEN drain THEN 1 ELSE 0 END
FROM bad WHERE bad.row_key = nodes.id;
DROP TABLE bad;
ALTER TABLE nodes ADD CONSTRAINT nodes_documents CHECK (CASE WHEN json_valid(tasks) THEN json_type(tasks) ELSE 'none'
    END = 'array' AND CASE WHEN json_valid(services) THEN json_type(services) ELSE 'none' END = 'object' AND CASE WHEN
    json_valid(statistics) THEN json_type(statistics) ELSE 'none' END = 'object');
ALTER TABLE nodes ADD CONSTRAINT nodes_numbers CHECK (pid BETWEEN 0 AND 1000000000000000 AND slots BETWEEN 0 AND
    1000000000000000 AND running BETWEEN 0 AND 1000000000000000);
ALTER TABLE nodes ADD CONSTRAINT nodes_instants CHECK (started_at BETWEEN -4000000000000000000 AND 4000000000000000000
    AND seen_at BETWEEN -4000000000000000000 AND 4000000000000000000 AND lease_until BETWEEN -4000000000000000000 AND
    4000000000000000000 AND lost_at BETWEEN -4000000000000000000 AND 4000000000000000000);
ALTER TABLE nodes ADD CONSTRAINT nodes_switches CHECK (draining BETWEEN 0 AND 1 AND drain BETWEEN 0 AND 1);

-- A project goes: its work must not run without its variables.
CREATE TABLE bad AS SELECT * FROM (
    SELECT name AS row_key, CAST(unixepoch('subsec') * 1000000 AS INTEGER) AS found_at, CASE
        WHEN NOT (CASE WHEN json_valid(env) THEN json_type(env) ELSE 'none' END = 'object') THEN
            'its variables are not JSON'
        WHEN NOT (created_at BETWEEN -4000000000000000000 AND 4000000000000000000) THEN
            'one of its times is out of range'
    END AS why FROM projects
) found WHERE why IS NOT NULL;
INSERT INTO quarantine (table_name, row_key, reason, at, content)
SELECT 'projects', CAST(bad.row_key AS TEXT), why, found_at, json_object('name', name, 'folder', folder, 'env', env,
    'created_at', created_at)
FROM projects r JOIN bad ON bad.row_key = r.name;
DELETE FROM projects WHERE name IN (SELECT row_key FROM bad);
DROP TABLE bad;
ALTER TABLE projects ADD CONSTRAINT projects_documents CHECK (CASE WHEN json_valid(env) THEN json_type(env) ELSE
    'none' END = 'object');
ALTER TABLE projects ADD CONSTRAINT projects_instants CHECK (created_at BETWEEN -4000000000000000000 AND
    4000000000000000000);

-- Nobody has a role that is unknown.
CREATE TABLE bad AS SELECT * FROM (
    SELECT name AS row_key, CAST(unixepoch('subsec') * 1000000 AS INTEGER) AS found_at, CASE
        WHEN NOT ((role = 'viewer' OR role = 'operator' OR role = 'admin')) THEN 'its role is unknown'
        WHEN NOT (created_at BETWEEN -4000000000000000000 AND 4000000000000000000 AND used_at BETWEEN
            -4000000000000000000 AND 4000000000000000000 AND expires_at BETWEEN -4000000000000000000 AND
            4000000000000000000) THEN 'one of its times is out of range'
    END AS why FROM tokens
) found WHERE why IS NOT NULL;
INSERT INTO quarantine (table_name, row_key, reason, at, content)
SELECT 'tokens', CAST(bad.row_key AS TEXT), why, found_at, json_object('id', id, 'name', name, 'role', role, 'owner',
    owner, 'created_at', created_at, 'used_at', used_at, 'expires_at', expires_at)
FROM tokens r JOIN bad ON bad.row_key = r.name;
DELETE FROM tokens WHERE name IN (SELECT row_key FROM bad);
DROP TABLE bad;
ALTER TABLE tokens ADD CONSTRAINT tokens_known_role CHECK ((role = 'viewer' OR role = 'operator' OR role = 'admin'));
ALTER TABLE tokens ADD CONSTRAINT tokens_instants CHECK (created_at BETWEEN -4000000000000000000 AND
    4000000000000000000 AND used_at BETWEEN -4000000000000000000 AND 4000000000000000000 AND expires_at BETWEEN
    -4000000000000000000 AND 4000000000000000000);

CREATE TABLE bad AS SELECT * FROM (
    SELECT substr(hash, 1, 8) AS row_key, CAST(unixepoch('subsec') * 1000000 AS INTEGER) AS found_at, CASE
        WHEN NOT ((role = 'viewer' OR role = 'operator' OR role = 'admin')) THEN 'its role is unknown'
        WHEN NOT (created_at BETWEEN -4000000000000000000 AND 4000000000000000000 AND expires_at BETWEEN
            -4000000000000000000 AND 4000000000000000000) THEN 'one of its times is out of range'
    END AS why FROM login_codes
) found WHERE why IS NOT NULL;
INSERT INTO quarantine (table_name, row_key, reason, at, content)
SELECT 'login_codes', CAST(bad.row_key AS TEXT), why, found_at, json_object('who', who, 'role', role, 'token_id',
    token_id, 'created_at', created_at, 'expires_at', expires_at)
FROM login_codes r JOIN bad ON bad.row_key = substr(r.hash, 1, 8);
DELETE FROM login_codes WHERE substr(hash, 1, 8) IN (SELECT row_key FROM bad);
DROP TABLE bad;
ALTER TABLE login_codes ADD CONSTRAINT login_codes_known_role CHECK ((role = 'viewer' OR role = 'operator' OR role =
    'admin'));
ALTER TABLE login_codes ADD CONSTRAINT login_codes_instants CHECK (created_at BETWEEN -4000000000000000000 AND
    4000000000000000000 AND expires_at BETWEEN -4000000000000000000 AND 4000000000000000000);

CREATE TABLE bad AS SELECT * FROM (
    SELECT id AS row_key, CAST(unixepoch('subsec') * 1000000 AS INTEGER) AS found_at, CASE
        WHEN NOT ((role = 'viewer' OR role = 'operator' OR role = 'admin')) THEN 'its role is unknown'
        WHEN NOT (created_at BETWEEN -4000000000000000000 AND 4000000000000000000 AND used_at BETWEEN
            -4000000000000000000 AND 4000000000000000000 AND expires_at BETWEEN -4000000000000000000 AND
            4000000000000000000) THEN 'one of its times is out of range'
    END AS why FROM logins
) found WHERE why IS NOT NULL;
INSERT INTO quarantine (table_name, row_key, reason, at, content)
SELECT 'logins', CAST(bad.row_key AS TEXT), why, found_at, json_object('id', id, 'who', who, 'role', role, 'token_id',
    token_id, 'created_at', created_at, 'used_at', used_at, 'expires_at', expires_at)
FROM logins r JOIN bad ON bad.row_key = r.id;
DELETE FROM logins WHERE id IN (SELECT row_key FROM bad);
DROP TABLE bad;
ALTER TABLE logins ADD CONSTRAINT logins_known_role CHECK ((role = 'viewer' OR role = 'operator' OR role = 'admin'));
ALTER TABLE logins ADD CONSTRAINT logins_instants CHECK (created_at BETWEEN -4000000000000000000 AND
    4000000000000000000 AND used_at BETWEEN -4000000000000000000 AND 4000000000000000000 AND expires_at BETWEEN
    -4000000000000000000 AND 4000000000000000000);

CREATE TABLE bad AS SELECT * FROM (
    SELECT id AS row_key, CAST(unixepoch('subsec') * 1000000 AS INTEGER) AS found_at, CASE
        WHEN NOT (at BETWEEN -4000000000000000000 AND 4000000000000000000) THEN 'one of its times is out of range'
    END AS why FROM audit
) found WHERE why IS NOT NULL;
INSERT INTO quarantine (table_name, row_key, reason, at, content)
SELECT 'audit', CAST(bad.row_key AS TEXT), why, found_at, json_object('id', id, 'at', at, 'who', who, 'door', door,
    'address', address, 'verb', verb, 'object', object, 'detail', detail)
FROM audit r JOIN bad ON bad.row_key = r.id;
UPDATE audit SET
    at = CASE WHEN at BETWEEN -4000000000000000000 AND 4000000000000000000 THEN at ELSE found_at END
FROM bad WHERE bad.row_key = audit.id;
DROP TABLE bad;
ALTER TABLE audit ADD CONSTRAINT audit_instants CHECK (at BETWEEN -4000000000000000000 AND 4000000000000000000);
