-- Sessions that drive agents: what their runs have used so far, how full their context is, and what a day has spent.

-- In millionths of a dollar.
ALTER TABLE sessions ADD COLUMN cost INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN tokens_in INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN tokens_out INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN turns INTEGER NOT NULL DEFAULT 0;
-- As the agent told last, in tokens.
ALTER TABLE sessions ADD COLUMN context_used INTEGER;
ALTER TABLE sessions ADD COLUMN context_window INTEGER;

-- Of messages with a budget, as `spending` is of schedules.
CREATE TABLE session_spending (
    session  TEXT    NOT NULL,
    day      TEXT    NOT NULL,
    runs     INTEGER NOT NULL DEFAULT 0,
    spent    INTEGER NOT NULL DEFAULT 0,
    reserved INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (session, day)
) STRICT, WITHOUT ROWID;
CREATE INDEX session_spending_day ON session_spending (day);
