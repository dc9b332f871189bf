-- Commits whose answer was lost, and connections of nodes that were lost.

-- One row for each process that writes: the number of its last group of which something must not be done twice, and the
-- ids of the runs that this inserted. It is replaced in its page with each, and touches no index.
CREATE TABLE commits (
    writer   bigint PRIMARY KEY,
    number   bigint NOT NULL,
    inserted text,
    at       bigint NOT NULL
) WITH (fillfactor = 50);

-- The key of its process, by which others find its connections and end them.
ALTER TABLE nodes ADD COLUMN writer bigint;

-- Which attempt printed a part, and the how many-th of that it was: a part that is written twice is there once.
ALTER TABLE output ADD COLUMN token bigint NOT NULL DEFAULT 0;
ALTER TABLE output ADD COLUMN number bigint NOT NULL DEFAULT 0;
