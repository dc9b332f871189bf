-- The trace that a run belongs to (W3C: traceparent, then tracestate if there is one), NULL for nearly all. Of messages
-- that were joined to it there is a line for each.
ALTER TABLE runs ADD COLUMN trace text;
