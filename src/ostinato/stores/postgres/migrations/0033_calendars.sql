-- Calendars of the user's own: named sets of dates. The timings of schedules that use one have its dates in their text.
CREATE TABLE calendars (
    name       text   NOT NULL PRIMARY KEY,
    dates      text   NOT NULL,
    note       text  ,
    version    bigint NOT NULL DEFAULT 1,
    made_by    text  ,
    created_at bigint NOT NULL,
    updated_by text  ,
    updated_at bigint NOT NULL
);
CREATE TABLE schedule_calendars (
    calendar    text   NOT NULL REFERENCES calendars (name),
    schedule_id bigint NOT NULL REFERENCES schedules (id) ON DELETE CASCADE,
    PRIMARY KEY (calendar, schedule_id)
);
CREATE INDEX schedule_calendars_of ON schedule_calendars (schedule_id);
