-- Calendars of the user's own: named sets of dates. The timings of schedules that use one have its dates in their text.
CREATE TABLE calendars (
    name       TEXT    NOT NULL PRIMARY KEY,
    dates      TEXT    NOT NULL,
    note       TEXT   ,
    version    INTEGER NOT NULL DEFAULT 1,
    made_by    TEXT   ,
    created_at INTEGER NOT NULL,
    updated_by TEXT   ,
    updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE schedule_calendars (
    calendar    TEXT    NOT NULL REFERENCES calendars (name),
    schedule_id INTEGER NOT NULL REFERENCES schedules (id) ON DELETE CASCADE,
    PRIMARY KEY (calendar, schedule_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX schedule_calendars_of ON schedule_calendars (schedule_id);
