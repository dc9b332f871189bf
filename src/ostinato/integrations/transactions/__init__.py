"""Runs that are committed or rolled back with what their caller writes.

`connections.py` recognises what the caller holds (psycopg, SQLAlchemy, Django) without importing any of them;
`enqueueing.py` writes through it: into the ledger, if that is in the same PostgreSQL, else into the outbox of the
caller's database (`table.py`). `drainer.py` takes what is in an outbox (`outbox.py`) into the ledger, on every node
whose app declares it (`outboxes.py`).
"""
