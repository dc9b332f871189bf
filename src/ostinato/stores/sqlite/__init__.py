"""SQLite: WAL, synchronous=FULL, one writer thread with group commit, readers beside it."""
