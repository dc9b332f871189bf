"""The ceiling on PostgreSQL: batched insert, claim and finish with psycopg on one connection, nothing executed."""

from __future__ import annotations

import time

import psycopg
from link import arguments, tell

BATCH = 500
TABLE = """
CREATE TABLE job (id bigserial PRIMARY KEY, state smallint NOT NULL, due timestamptz NOT NULL, payload text,
                  started timestamptz, finished timestamptz);
CREATE INDEX job_ready ON job (due, id) WHERE state = 0;
"""
INSERT = "INSERT INTO job (state, due, payload) SELECT 0, now(), p FROM unnest(%s::text[]) p"
CLAIM = """
UPDATE job SET state = 1, started = now() WHERE id = ANY (ARRAY(
    SELECT id FROM job WHERE state = 0 AND due <= now() ORDER BY due, id LIMIT %s FOR UPDATE SKIP LOCKED
)) RETURNING id
"""
FINISH = "UPDATE job SET state = 2, finished = now() WHERE id = ANY (%s)"
PAYLOAD = "x" * 100


def main() -> None:
    """Insert all, then claim and finish batch by batch, each statement its own transaction."""
    asked = arguments()
    n = asked["n"]
    with psycopg.connect(asked["db"], autocommit=True) as connection:
        connection.execute(TABLE)
        start = time.perf_counter()
        for first in range(0, n, BATCH):
            connection.execute(INSERT, ([PAYLOAD] * min(BATCH, n - first),))
        inserted = time.perf_counter()
        done = 0
        while done < n:
            claimed = connection.execute(CLAIM, (BATCH,)).fetchall()
            connection.execute(FINISH, ([id for (id,) in claimed],))
            done += len(claimed)
        end = time.perf_counter()
        row = connection.execute("SELECT count(*) FROM job WHERE state = 2").fetchone()
        assert row is not None
        recorded = row[0]
    tell(
        rate=n / (end - start),
        seconds=end - start,
        enqueue_rate=n / (inserted - start),
        claim_finish_rate=n / (end - inserted),
        recorded=recorded,
    )


if __name__ == "__main__":
    main()
