-- What an agent did, it is not to do again unasked: the default retry of agents covers only what failed before the agent
-- began. Schedules of agents that asked for no retry of their own get it; those that did keep theirs, which covers all.
-- It is written where a new policy has it, before the timeout, so that code that declares such a schedule finds it as it is.

UPDATE schedules SET policy =
    substr(policy, 1, place - 1) || '"retry":{"max":3,"base":"2s","longest":"30s","spread":0.25,"covers":"start"}'
    || CASE WHEN substr(policy, place) = '}' THEN '' ELSE ',' END || substr(policy, place)
FROM (
    SELECT id AS of_id,
           CASE WHEN policy::json -> 'timeout' IS NULL THEN 2 ELSE position('"timeout":' IN policy) END AS place
    FROM schedules
    WHERE kind = 'agent' AND CASE WHEN json_kind(policy) = 'object' THEN policy LIKE '{%' AND policy::json -> 'retry' IS NULL END
) old
WHERE id = of_id;
