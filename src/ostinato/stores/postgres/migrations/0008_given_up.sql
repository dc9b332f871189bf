-- A database that had 0007 early checks the ranges of a run's numbers and times at every write, which costs too much: the
-- sweep finds them, as in every other database.
ALTER TABLE runs
    DROP CONSTRAINT IF EXISTS runs_numbers,
    DROP CONSTRAINT IF EXISTS runs_due_times,
    DROP CONSTRAINT IF EXISTS runs_instants;

-- Code that was told to stop, did not, and goes on in a thread or a coroutine of its node, though its run has ended. It
-- occupies the name of its schedule ('' if it has none), also of a new schedule of that name: so the name stands here.
-- The row goes when the code ends, or its node does.

CREATE TABLE given_up (
    schedule text   COLLATE "C" NOT NULL,
    run_id   bigint NOT NULL,
    token    bigint NOT NULL,
    name     text   COLLATE "C" NOT NULL,
    node     text   COLLATE "C" NOT NULL REFERENCES nodes (id) ON DELETE CASCADE,
    at       bigint NOT NULL,
    PRIMARY KEY (schedule, run_id, token)
);
CREATE INDEX given_up_node ON given_up (node);
