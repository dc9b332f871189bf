"""PostgreSQL: psycopg 3, one writer with group commit in pipelines, readers beside it, LISTEN/NOTIFY between nodes."""
