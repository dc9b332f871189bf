-- Work of every kind: projects, what budgets have spent, conversations of agents, and output that can be followed.

CREATE TABLE projects (
    name       TEXT PRIMARY KEY,
    folder     TEXT    NOT NULL,
    env        TEXT    NOT NULL,
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

ALTER TABLE runs ADD COLUMN project TEXT;
CREATE INDEX runs_project ON runs (project, id) WHERE project IS NOT NULL;

-- A schedule that is put off for a while; its due times from `held_since` on become one skipped row.
ALTER TABLE schedules ADD COLUMN held_since INTEGER;
ALTER TABLE schedules ADD COLUMN held_reason TEXT;
CREATE INDEX schedules_held ON schedules (name) WHERE held_since IS NOT NULL;
CREATE INDEX schedules_project ON schedules (project) WHERE project IS NOT NULL;

-- Budgets, in millionths of a dollar: what a day has used, and what a run reserved of which day.
CREATE TABLE spending (
    schedule_id INTEGER NOT NULL REFERENCES schedules (id) ON DELETE CASCADE,
    day         TEXT    NOT NULL,
    runs        INTEGER NOT NULL DEFAULT 0,
    spent       INTEGER NOT NULL DEFAULT 0,
    reserved    INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (schedule_id, day)
) STRICT, WITHOUT ROWID;
CREATE INDEX spending_day ON spending (day);
ALTER TABLE runs ADD COLUMN budget_day TEXT;
ALTER TABLE runs ADD COLUMN reserved INTEGER;

CREATE TABLE conversations (
    key        TEXT PRIMARY KEY,
    id         TEXT    NOT NULL,
    project    TEXT,
    updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What was cut before a part: line ends and characters.
ALTER TABLE output ADD COLUMN cut_lines INTEGER NOT NULL DEFAULT 0;
ALTER TABLE output ADD COLUMN cut INTEGER NOT NULL DEFAULT 0;
