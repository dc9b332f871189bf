-- Why a run did not simply succeed, as one word that programs decide by; `reason` says the same for people. While a run
-- is under way and is told to stop, it is why it shall. A schedule that is held has the same for its hold; the word says
-- something only while `held_since` does. Old rows get theirs by what their reasons say.

ALTER TABLE runs ADD COLUMN cause TEXT;
ALTER TABLE schedules ADD COLUMN held_cause TEXT;

UPDATE schedules SET held_cause = CASE WHEN held_reason LIKE 'budget:%' THEN 'budget' ELSE 'removed' END
WHERE held_since IS NOT NULL;

UPDATE runs SET cause = CASE
    WHEN cancel = 'interrupted by a newer message of its session' THEN 'interrupted'
    WHEN cancel = 'its session was stopped' THEN 'session_stopped'
    WHEN cancel LIKE 'replaced by %(overlap is cancel_running)%' THEN 'overlap'
    WHEN cancel IN ('its schedule is to be removed', 'its schedule was removed') THEN 'removed'
    ELSE 'cancelled'
END
WHERE state = 'running' AND cancel IS NOT NULL;

UPDATE runs SET cause = 'unknown_task' WHERE state = 'queued' AND reason LIKE 'task % is not registered %';

UPDATE runs SET cause = CASE state
    WHEN 'missed' THEN CASE WHEN reason LIKE '%outside of its window or above its cap%' THEN 'outside_window' ELSE 'downtime' END
    WHEN 'expired' THEN 'expired'
    WHEN 'superseded' THEN 'interrupted'
    WHEN 'skipped' THEN CASE
        WHEN reason LIKE 'check failed:%' THEN 'check'
        WHEN reason LIKE 'the gate %' THEN 'gate'
        WHEN reason LIKE 'budget:%' THEN 'budget'
        WHEN reason LIKE 'debounced:%' THEN 'debounced'
        WHEN reason LIKE 'dropped:%' THEN 'dropped'
        WHEN reason LIKE 'stale:%' THEN 'stale'
        WHEN reason LIKE 'it is being removed:%' THEN 'removed'
        ELSE 'overlap'
    END
    WHEN 'cancelled' THEN CASE
        WHEN reason LIKE 'lane cleared%' THEN 'lane_cleared'
        WHEN reason LIKE 'its session was stopped%' THEN 'session_stopped'
        WHEN reason LIKE 'replaced by %(overlap is cancel_running)%' THEN 'overlap'
        WHEN reason LIKE 'its schedule is to be removed%' OR reason LIKE 'its schedule was removed%' THEN 'removed'
        ELSE 'cancelled'
    END
    ELSE CASE
        WHEN reason LIKE 'timed out after %' AND error IS NULL THEN 'timed_out'
        WHEN reason LIKE 'node % was lost while it ran this%' THEN 'node_lost'
        WHEN reason LIKE 'the node could not renew its lease%' THEN 'node_lost'
        WHEN reason LIKE 'its node was stopped%' THEN 'cut_off'
        WHEN reason LIKE 'its outcome could not be %' THEN 'not_recorded'
        WHEN reason LIKE 'its row could not be read:%' THEN 'not_loadable'
        WHEN reason LIKE '%the budget lets it try no more:%' THEN 'budget'
        WHEN reason LIKE 'this run cannot be executed: task % is not registered %' THEN 'unknown_task'
        WHEN reason LIKE 'this run cannot be executed: its %not readable:%' THEN 'not_loadable'
        WHEN reason LIKE 'this run cannot be executed:%' THEN 'not_started'
        WHEN reason LIKE '%could not be started:%' OR reason LIKE '%cannot be started:%' THEN 'not_started'
        WHEN reason LIKE 'its process cannot import %' THEN 'not_started'
        WHEN kind = 'http' THEN CASE
            WHEN reason LIKE 'HTTP %' THEN 'http_status'
            WHEN reason LIKE '% resolves to %' OR reason LIKE '%certificate of %' OR reason LIKE '% redirects %'
              OR reason LIKE '% cannot be called%' OR reason LIKE 'its header %' OR reason LIKE 'the body unpacks %'
            THEN 'request_refused'
            ELSE 'no_answer'
        END
        WHEN kind = 'shell' THEN CASE
            WHEN reason LIKE 'exited with %' OR reason LIKE 'was killed by %' OR reason LIKE 'ended, and %' THEN 'exit_status'
            ELSE 'not_started'
        END
        WHEN kind = 'agent' THEN CASE
            WHEN reason LIKE '% is not logged in (%' THEN 'logged_out'
            WHEN reason LIKE 'the budget%of this run is used up%' THEN 'budget'
            ELSE 'agent_error'
        END
        WHEN reason LIKE 'its process %before the function returned%' THEN 'crashed'
        WHEN error IS NULL OR error LIKE '%ostinato.errors.Abort%' THEN 'aborted'
        ELSE 'raised'
    END
END
WHERE state NOT IN ('succeeded', 'queued', 'running');

-- Succeeded runs have none: there is nothing to write for them here.
CREATE INDEX runs_cause ON runs (cause, id) WHERE cause IS NOT NULL;
