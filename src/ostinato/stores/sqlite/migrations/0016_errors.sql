-- Runs that succeeded and counted errors have the cause 'errors', also those that ended before there was one.

UPDATE runs SET cause = 'errors', reason = CASE
    WHEN errors = 1 THEN '1 error'
    WHEN errors = CAST(errors AS INTEGER) THEN CAST(errors AS INTEGER) || ' errors'
    ELSE errors || ' errors' END
FROM (
    SELECT id AS of_id, CASE WHEN json_valid(totals) THEN
        CASE WHEN json_type(totals, '$.errors') IN ('integer', 'real') THEN json_extract(totals, '$.errors') END END AS errors
    FROM runs WHERE state = 'succeeded' AND cause IS NULL AND totals LIKE '%"errors"%'
)
WHERE id = of_id AND errors > 0;

-- How many there were in a span of time, without a look at all that ended in it. By the cause, too, which it always has:
-- SQLite would take runs_cause otherwise, and read all that there ever were.
CREATE INDEX runs_with_errors ON runs (cause, finished_at) WHERE cause = 'errors';
