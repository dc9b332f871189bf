"""The ceiling on SQLite: batched insert, claim and finish with apsw in one thread, no engine and nothing executed."""

from __future__ import annotations

import time

import apsw
from link import arguments, tell

BATCH = 500
TABLE = """
CREATE TABLE job (id INTEGER PRIMARY KEY, state INTEGER NOT NULL, due REAL NOT NULL, payload TEXT,
                  started REAL, finished REAL);
CREATE INDEX job_ready ON job (due, id) WHERE state = 0;
"""
INSERT = "INSERT INTO job (state, due, payload) VALUES (0, ?, ?)"
CLAIM = """
UPDATE job SET state = 1, started = ? WHERE id IN (SELECT id FROM job WHERE state = 0 ORDER BY due, id LIMIT ?)
RETURNING id
"""
FINISH = "UPDATE job SET state = 2, finished = ? WHERE id = ?"
PAYLOAD = "x" * 100


def main() -> None:
    """Insert all, then finish one batch and claim the next in one transaction."""
    asked = arguments()
    connection = apsw.Connection(asked["path"])
    connection.execute("PRAGMA journal_mode = WAL").fetchall()
    connection.execute("PRAGMA synchronous = FULL").fetchall()
    connection.execute(TABLE).fetchall()
    start = time.perf_counter()
    for first in range(0, asked["n"], BATCH):
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(INSERT, [(due, PAYLOAD) for due in range(first, min(first + BATCH, asked["n"]))])
        connection.execute("COMMIT")
    inserted = time.perf_counter()
    claimed: list[tuple[int]] = []
    done = 0
    while done < asked["n"]:
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(FINISH, [(2.0, id) for (id,) in claimed])
        done += len(claimed)
        claimed = connection.execute(CLAIM, (1.0, BATCH)).fetchall()
        connection.execute("COMMIT")
    end = time.perf_counter()
    recorded = connection.execute("SELECT count(*) FROM job WHERE state = 2").fetchall()[0][0]
    connection.close()
    n = asked["n"]
    tell(
        rate=n / (end - start),
        seconds=end - start,
        enqueue_rate=n / (inserted - start),
        claim_finish_rate=n / (end - inserted),
        recorded=recorded,
    )


if __name__ == "__main__":
    main()
