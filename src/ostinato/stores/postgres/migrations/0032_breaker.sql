-- Functions have no breaker unless they ask for one; commands, agents, HTTP calls and what packages add keep the three
-- failures in a row that everything had: it is written where a new policy has it, so that code that declares such a
-- schedule finds it as it is. Runs that are queued keep it as well. And once means once: what is to run one time and
-- asked for no retry has none.

UPDATE schedules t SET policy = (
    SELECT '{' || string_agg(pair, ',' ORDER BY place, number) || '}' FROM (
        SELECT 1 AS place, 0::bigint AS number, '"break_after":3' AS pair
        UNION ALL
        SELECT CASE WHEN key IN ('overlap', 'catch_up', 'catch_up_window', 'catch_up_cap', 'retry', 'timeout', 'soft_timeout', 'silent', 'max_age') THEN 0 ELSE 2 END,
               number, to_json(key)::text || ':' || value::text
        FROM json_each(t.policy::json) WITH ORDINALITY each (key, value, number)
    ) pairs
)
WHERE kind NOT IN ('function', 'check_in') AND CASE WHEN json_kind(policy) = 'object' THEN policy::json -> 'break_after' IS NULL END;

UPDATE runs t SET policy = (
    SELECT '{' || string_agg(pair, ',' ORDER BY place, number) || '}' FROM (
        SELECT 1 AS place, 0::bigint AS number, '"break_after":3' AS pair
        UNION ALL
        SELECT CASE WHEN key IN ('overlap', 'catch_up', 'catch_up_window', 'catch_up_cap', 'retry', 'timeout', 'soft_timeout', 'silent', 'max_age') THEN 0 ELSE 2 END,
               number, to_json(key)::text || ':' || value::text
        FROM json_each(t.policy::json) WITH ORDINALITY each (key, value, number)
    ) pairs
)
WHERE state IN ('queued', 'running') AND kind NOT IN ('function', 'check_in') AND CASE WHEN json_kind(policy) = 'object' THEN policy::json -> 'break_after' IS NULL END;

UPDATE schedules t SET policy = (
    SELECT '{' || string_agg(pair, ',' ORDER BY place, number) || '}' FROM (
        SELECT 1 AS place, 0::bigint AS number, '"retry":{"max":0,"base":"2s","longest":"30s","spread":0.25}' AS pair
        UNION ALL
        SELECT CASE WHEN key IN ('overlap', 'catch_up', 'catch_up_window', 'catch_up_cap') THEN 0 ELSE 2 END,
               number, to_json(key)::text || ':' || value::text
        FROM json_each(t.policy::json) WITH ORDINALITY each (key, value, number)
    ) pairs
)
WHERE CASE WHEN json_kind(policy) = 'object' THEN policy::json ->> 'remaining' = '1' AND policy::json -> 'retry' IS NULL END;

UPDATE runs t SET policy = (
    SELECT '{' || string_agg(pair, ',' ORDER BY place, number) || '}' FROM (
        SELECT 1 AS place, 0::bigint AS number, '"retry":{"max":0,"base":"2s","longest":"30s","spread":0.25}' AS pair
        UNION ALL
        SELECT CASE WHEN key IN ('overlap', 'catch_up', 'catch_up_window', 'catch_up_cap') THEN 0 ELSE 2 END,
               number, to_json(key)::text || ':' || value::text
        FROM json_each(t.policy::json) WITH ORDINALITY each (key, value, number)
    ) pairs
)
WHERE state IN ('queued', 'running') AND schedule_id IS NOT NULL AND CASE WHEN json_kind(policy) = 'object' THEN policy::json ->> 'remaining' = '1' AND policy::json -> 'retry' IS NULL END;

-- What code has declared, it said from the beginning.
UPDATE schedules t SET declared = (declared::jsonb || jsonb_build_object('break_after', jsonb_build_object(
    'value', 3, 'at', (SELECT min((value ->> 'at')::bigint) FROM json_each(t.declared::json))
)))::text
WHERE kind NOT IN ('function', 'check_in') AND CASE WHEN json_kind(declared) = 'object' THEN declared::json -> 'break_after' IS NULL END;

UPDATE schedules t SET declared = (declared::jsonb || jsonb_build_object('retry', jsonb_build_object(
    'value', '{"max":0,"base":"2s","longest":"30s","spread":0.25}'::jsonb, 'at', (SELECT min((value ->> 'at')::bigint) FROM json_each(t.declared::json))
)))::text
WHERE CASE WHEN json_kind(declared) = 'object' THEN
    declared::json -> 'remaining' ->> 'value' = '1' AND declared::json -> 'retry' IS NULL END;
