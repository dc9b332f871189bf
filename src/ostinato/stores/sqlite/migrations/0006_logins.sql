-- A login has two secrets: that of its cookie, and that of the origin of its page. Those of before have one, and end.
DELETE FROM logins;
ALTER TABLE logins ADD COLUMN origin_hash TEXT NOT NULL DEFAULT '';

-- Each actor keeps so many answers; the oldest go.
CREATE INDEX requests_actor ON requests (who, begun_at);
