-- Code that was told to stop, did not, and goes on in a thread or a coroutine of its node, though its run has ended. It
-- occupies the name of its schedule ('' if it has none), also of a new schedule of that name: so the name stands here.
-- The row goes when the code ends, or its node does.

CREATE TABLE given_up (
    schedule TEXT    NOT NULL,
    run_id   INTEGER NOT NULL,
    token    INTEGER NOT NULL,
    name     TEXT    NOT NULL,
    node     TEXT    NOT NULL REFERENCES nodes (id) ON DELETE CASCADE,
    at       INTEGER NOT NULL,
    PRIMARY KEY (schedule, run_id, token)
) STRICT, WITHOUT ROWID;
CREATE INDEX given_up_node ON given_up (node);
