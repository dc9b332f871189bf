-- Which attempt printed a part, and the how many-th of that it was: a part that is written twice is there once.
ALTER TABLE output ADD COLUMN token INTEGER NOT NULL DEFAULT 0;
ALTER TABLE output ADD COLUMN number INTEGER NOT NULL DEFAULT 0;
