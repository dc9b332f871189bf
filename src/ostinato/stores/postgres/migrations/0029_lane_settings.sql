-- The limit that a lane has again when no engine has a setting for it any more, and the node that set it last.
ALTER TABLE lanes ADD COLUMN set_before bigint;
ALTER TABLE lanes ADD COLUMN fixed_by text;
