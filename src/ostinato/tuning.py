"""How long each part waits and how much it takes at once: numbers that nobody sets, but that a test has to vary.

`Settings` carries one; it is neither in ostinato.toml nor in the environment, and is shown nowhere.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DEFAULT_TUNING", "Tuning"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """Read once, by whoever is made with it."""

    # Execution

    function_stop_seconds: float = 5.0
    """How long a function that was told to stop may take before its run is recorded without it."""
    command_kill_seconds: float = 10.0
    """Between SIGTERM and SIGKILL."""
    command_gone_seconds: float = 1.0
    """How long a forced stop waits until what it killed is gone."""
    check_seconds: float = 30.0
    """How long one check may take. In real time: a run's own timeout begins after its checks."""
    ping_url_seconds: float = 10.0
    """How long one call of a `ping_url` may take."""
    ping_url_waits: tuple[float, ...] = (1.0, 3.0)
    """After which seconds it is tried again, if nobody answers."""
    folder_seconds: float = 30.0
    """How long a folder and the files of secrets may take to be found: they may be on another machine."""
    http_connect_seconds: float = 15.0
    """For a connection to one address, and again for its TLS."""
    http_idle_seconds: float = 3_600.0
    """Without a byte. The run's timeout is shorter; this is for those that have none."""
    agent_report_bytes: int = 256_000
    """How much of an agent's report is kept."""

    # Engine

    due_batch: int = 2_000
    """How many due schedules are planned in one transaction."""
    service_restart_seconds: float = 0.1
    """Before a service that died is started again for the first time; each further pause is twice as long."""
    loop_block_seconds: float = 2.0
    """After how long a loop that does not turn counts as blocked; 0 does not watch it."""
    lease_look_seconds: float = 1.0
    """How often the lease is looked at. A timer until its end would not count while the machine is suspended."""
    lease_late_seconds: float = 1.0
    """Woken so much later than planned, the process itself was stopped, and its beat had no chance."""
    lease_second_chance_seconds: float = 2.0
    """How long that beat is waited for, before the work is stopped for want of it."""
    clock_jump_seconds: float = 1.0
    """A wall clock that differs by so much from what has passed was set."""
    write_again_seconds: float = 0.5
    """Before a stopping node tries again to write what the database did not take."""

    key_free_seconds: float = 10.0
    """How long an enqueue waits for somebody's transaction that has its key. In real time."""
    send_late_seconds: float = 30.0
    """How long a message may take before it is said that its channel does not answer. In real time."""
    send_hangs_seconds: float = 600.0
    """How long an answer is waited for before it is sent again: as long as nobody knows, nothing else goes there."""
    send_stop_seconds: float = 3.0
    """How long a stop waits for messages that are being sent. Others send them again."""
    send_look_seconds: float = 0.2
    """Between two looks at what is to be sent at least, however often something changes."""

    event_queue: int = 10_000
    """How many events wait for the callbacks of `app.on` at most."""
    event_stop_seconds: float = 1.0
    """How long a stop waits for those callbacks."""

    # Services

    removal_stop_seconds: float = 15.0
    """How long a removal waits for what runs: longer than `command_kill_seconds`, and its node has to hear of it."""
    send_test_seconds: float = 45.0
    """How long a test of a channel is waited for: longer than `send_late_seconds`, which says what is wrong."""
    timeline_schedules: int = 2_000
    """How many schedules of a project the timeline shows, those that are due first."""
    timeline_runs: int = 200_000
    """How many ended runs of a span the timeline counts, those that ended last."""
    live_look_seconds: float = 0.2
    """Between two looks of the live stream at least: many changes are one look."""
    live_pause_seconds: float = 1.0
    """And at most: what other processes claim and finish is not announced on PostgreSQL, it is looked for."""

    # Stores

    kept_answers: int = 1_000
    """How many answers to requests are kept for each actor; the oldest go."""
    sqlite_lock_seconds: float = 10.0
    """How long a call waits for a lock before it raises StoreUnavailable."""
    sqlite_lock_warning_seconds: float = 2.0
    """How long it waits before it says what for."""
    sqlite_migration_seconds: float = 600.0
    """How long a start waits for another process that migrates a large file just now."""
    postgres_effort_seconds: float = 3.0
    """How long a group of writes waits for a server that is gone before its callers learn it."""
    postgres_beat_seconds: float = 3.0
    """How long one statement of a heartbeat may take. A line that is cut may be silent for ever."""

    # Server

    readiness_seconds: float = 3.0
    """How long /readyz waits for the database."""
    live_sockets: int = 50
    """How many sockets one person or token may have open."""
    live_login_seconds: float = 5.0
    """How long a socket may take to say who it is."""
    live_send_seconds: float = 10.0
    """How long a client may leave a message unread."""
    live_identify_seconds: float = 60.0
    """How often it is looked at whether whoever listens still may."""
    host_login_seconds: float = 10.0
    """How long the callback `who` of `app.asgi(who)` may take."""
    server_restart_seconds: float = 1.0
    """Before a server beside an engine that was killed is started again for the first time."""
    server_longest_restart_seconds: float = 30.0
    """The most that this pause grows to."""
    server_end_seconds: float = 10.0
    """How long that server has to end, of which requests under way have three."""
    server_code_seconds: float = 60.0
    """How long it waits for the application's code: a task may hold its loop."""

    # Telegram

    telegram_poll_seconds: float = 25.0
    """How long one request waits for something to come."""
    telegram_retry_seconds: float = 1.0
    """Before a request is made again that did not get there; each further pause is twice as long, up to a minute."""
    telegram_conflict_seconds: float = 30.0
    """Before it is tried again while another program has the bot's updates."""
    telegram_refused_seconds: float = 300.0
    """Before a token is tried again that Telegram does not know."""
    telegram_command_seconds: float = 3.0
    """How long a command holds up the ones behind it."""
    telegram_typing_seconds: float = 4.0
    """How often it is shown that an answer is being written: Telegram shows it for five seconds."""

    # Ends of a process

    force_seconds: float = 5.0
    """How long the ledger may take to learn what becomes of the runs, once a stop is forced."""
    exec_write_seconds: float = 3.0
    """The same for `ostinato exec`; less than `force_seconds`, after which the process is ended."""


DEFAULT_TUNING = Tuning()
"""What everybody has."""
