-- Sessions that drive agents: what their runs have used so far, how full their context is, and what a day has spent.

-- The cost is in millionths of a dollar; the context as the agent told last, in tokens.
ALTER TABLE sessions
    ADD COLUMN cost bigint NOT NULL DEFAULT 0,
    ADD COLUMN tokens_in bigint NOT NULL DEFAULT 0,
    ADD COLUMN tokens_out bigint NOT NULL DEFAULT 0,
    ADD COLUMN turns bigint NOT NULL DEFAULT 0,
    ADD COLUMN context_used bigint,
    ADD COLUMN context_window bigint;

-- Of messages with a budget, as `spending` is of schedules.
CREATE TABLE session_spending (
    session  text   COLLATE "C" NOT NULL,
    day      text   COLLATE "C" NOT NULL,
    runs     bigint NOT NULL DEFAULT 0,
    spent    bigint NOT NULL DEFAULT 0,
    reserved bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (session, day)
-- It changes with every message, and no indexed column does: see nodes.
) WITH (fillfactor = 50);
CREATE INDEX session_spending_day ON session_spending (day);
