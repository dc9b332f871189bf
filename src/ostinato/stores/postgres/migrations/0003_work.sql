-- Work of every kind: projects, what budgets have spent, conversations of agents, and output that can be followed.

CREATE TABLE projects (
    name       text   COLLATE "C" PRIMARY KEY,
    folder     text   NOT NULL,
    env        text   NOT NULL,
    created_at bigint NOT NULL
);

ALTER TABLE runs ADD COLUMN project text COLLATE "C";
CREATE INDEX runs_project ON runs (project, id) WHERE project IS NOT NULL;

-- A schedule that is put off for a while; its due times from `held_since` on become one skipped row.
ALTER TABLE schedules ALTER COLUMN project TYPE text COLLATE "C";
ALTER TABLE schedules ADD COLUMN held_since bigint;
ALTER TABLE schedules ADD COLUMN held_reason text;
CREATE INDEX schedules_held ON schedules (name) WHERE held_since IS NOT NULL;
CREATE INDEX schedules_project ON schedules (project) WHERE project IS NOT NULL;

-- Budgets, in millionths of a dollar: what a day has used, and what a run reserved of which day.
CREATE TABLE spending (
    schedule_id bigint NOT NULL REFERENCES schedules (id) ON DELETE CASCADE,
    day         text   COLLATE "C" NOT NULL,
    runs        bigint NOT NULL DEFAULT 0,
    spent       bigint NOT NULL DEFAULT 0,
    reserved    bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (schedule_id, day)
-- It changes with every run of its schedule, and no indexed column does: see nodes.
) WITH (fillfactor = 50);
CREATE INDEX spending_day ON spending (day);
ALTER TABLE runs ADD COLUMN budget_day text COLLATE "C";
ALTER TABLE runs ADD COLUMN reserved bigint;

CREATE TABLE conversations (
    key        text   COLLATE "C" PRIMARY KEY,
    id         text   NOT NULL,
    project    text   COLLATE "C",
    updated_at bigint NOT NULL
);

-- What was cut before a part: line ends and characters.
ALTER TABLE output ADD COLUMN cut_lines bigint NOT NULL DEFAULT 0;
ALTER TABLE output ADD COLUMN cut bigint NOT NULL DEFAULT 0;
