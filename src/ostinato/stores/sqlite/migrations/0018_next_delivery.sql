-- When a message was tried for the first time: for a day from then on it is tried again.
ALTER TABLE deliveries ADD COLUMN tried_at INTEGER;

-- In the order in which they are sent, and apart from the others those that are a message of their own.
CREATE INDEX deliveries_next ON deliveries (channel, attempts, id) WHERE state = 'pending';
CREATE INDEX deliveries_alone ON deliveries (channel, attempts, id)
    WHERE state = 'pending' AND kind IN ('answer', 'digest', 'test');

-- As they are listed: those of a channel, and what was given up.
CREATE INDEX deliveries_of_channel ON deliveries (channel, id);
CREATE INDEX deliveries_failed ON deliveries (id) WHERE state = 'failed';
