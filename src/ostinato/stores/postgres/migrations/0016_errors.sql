-- Runs that succeeded and counted errors have the cause 'errors', also those that ended before there was one.

UPDATE runs SET cause = 'errors', reason = CASE WHEN errors = 1 THEN '1 error' ELSE trim_scale(errors) || ' errors' END
FROM (
    SELECT id AS of_id, CASE WHEN json_kind(totals) = 'object' THEN
        CASE WHEN json_typeof(totals::json -> 'errors') = 'number' THEN (totals::json ->> 'errors')::numeric END END AS errors
    FROM runs WHERE state = 'succeeded' AND cause IS NULL AND totals LIKE '%"errors"%'
) old
WHERE id = of_id AND errors > 0;

-- How many there were in a span of time, without a look at all that ended in it. By the cause, too, as in SQLite, which
-- would take runs_cause otherwise.
CREATE INDEX runs_with_errors ON runs (cause, finished_at) WHERE cause = 'errors';
