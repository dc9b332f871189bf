-- Functions have no breaker unless they ask for one; commands, agents, HTTP calls and what packages add keep the three
-- failures in a row that everything had: it is written where a new policy has it, so that code that declares such a
-- schedule finds it as it is. Runs that are queued keep it as well. And once means once: what is to run one time and
-- asked for no retry has none.

UPDATE schedules SET policy = (
    SELECT '{' || group_concat(pair, ',' ORDER BY place, number) || '}' FROM (
        SELECT 1 AS place, 0 AS number, '"break_after":3' AS pair
        UNION ALL
        SELECT CASE WHEN key IN ('overlap', 'catch_up', 'catch_up_window', 'catch_up_cap', 'retry', 'timeout', 'soft_timeout', 'silent', 'max_age') THEN 0 ELSE 2 END,
               id, json_quote(key) || ':' || (schedules.policy -> key)
        FROM json_each(schedules.policy)
    )
)
WHERE kind NOT IN ('function', 'check_in') AND CASE WHEN json_valid(policy) THEN json_type(policy) = 'object' AND json_type(policy, '$.break_after') IS NULL END;

UPDATE runs SET policy = (
    SELECT '{' || group_concat(pair, ',' ORDER BY place, number) || '}' FROM (
        SELECT 1 AS place, 0 AS number, '"break_after":3' AS pair
        UNION ALL
        SELECT CASE WHEN key IN ('overlap', 'catch_up', 'catch_up_window', 'catch_up_cap', 'retry', 'timeout', 'soft_timeout', 'silent', 'max_age') THEN 0 ELSE 2 END,
               id, json_quote(key) || ':' || (runs.policy -> key)
        FROM json_each(runs.policy)
    )
)
WHERE state IN ('queued', 'running') AND kind NOT IN ('function', 'check_in') AND CASE WHEN json_valid(policy) THEN json_type(policy) = 'object' AND json_type(policy, '$.break_after') IS NULL END;

UPDATE schedules SET policy = (
    SELECT '{' || group_concat(pair, ',' ORDER BY place, number) || '}' FROM (
        SELECT 1 AS place, 0 AS number, '"retry":{"max":0,"base":"2s","longest":"30s","spread":0.25}' AS pair
        UNION ALL
        SELECT CASE WHEN key IN ('overlap', 'catch_up', 'catch_up_window', 'catch_up_cap') THEN 0 ELSE 2 END,
               id, json_quote(key) || ':' || (schedules.policy -> key)
        FROM json_each(schedules.policy)
    )
)
WHERE CASE WHEN json_valid(policy) THEN json_extract(policy, '$.remaining') = 1 AND json_type(policy, '$.retry') IS NULL END;

UPDATE runs SET policy = (
    SELECT '{' || group_concat(pair, ',' ORDER BY place, number) || '}' FROM (
        SELECT 1 AS place, 0 AS number, '"retry":{"max":0,"base":"2s","longest":"30s","spread":0.25}' AS pair
        UNION ALL
        SELECT CASE WHEN key IN ('overlap', 'catch_up', 'catch_up_window', 'catch_up_cap') THEN 0 ELSE 2 END,
               id, json_quote(key) || ':' || (runs.policy -> key)
        FROM json_each(runs.policy)
    )
)
WHERE state IN ('queued', 'running') AND schedule_id IS NOT NULL AND CASE WHEN json_valid(policy) THEN json_extract(policy, '$.remaining') = 1 AND json_type(policy, '$.retry') IS NULL END;

-- What code has declared, it said from the beginning.
UPDATE schedules SET declared = json_set(declared, '$.break_after', json_object(
    'value', 3, 'at', (SELECT min(json_extract(value, '$.at')) FROM json_each(schedules.declared))
))
WHERE kind NOT IN ('function', 'check_in') AND CASE WHEN json_valid(declared) THEN json_type(declared, '$.break_after') IS NULL END;

UPDATE schedules SET declared = json_set(declared, '$.retry', json_object(
    'value', json('{"max":0,"base":"2s","longest":"30s","spread":0.25}'), 'at', (SELECT min(json_extract(value, '$.at')) FROM json_each(schedules.declared))
))
WHERE CASE WHEN json_valid(declared) THEN
    json_extract(declared, '$.remaining.value') = 1 AND json_type(declared, '$.retry') IS NULL END;
