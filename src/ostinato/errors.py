"""Every error that Ostinato raises on purpose.

OstinatoError
├── TimingError          an invalid timing: says where, and suggests a valid one
├── InvalidInput         any other invalid value, with the name of its field
├── NotFound             no such schedule, run, task, lane, session or node
│   └── NoDatabase       a command that only looks found no database where it looked
├── Conflict             the state of the object does not allow this
│   ├── AlreadyActive    a trigger while the schedule's overlap policy says no
│   ├── ChecksFailed     a schedule cannot be enabled: carries each failed check
│   ├── VersionConflict  somebody else changed the row since it was read
│   ├── QueueFull        a session's queue is full, and the new message is refused
│   ├── KeyBusy          a transaction that is still open has enqueued with this key
│   └── Draining         this node is shutting down and takes no more work
├── NotLoggedIn          the token, login or code is not valid
├── NotAllowed           logged in, but not allowed to do this
├── LoginUnavailable     nobody can say right now who is logged in
├── TooManyAttempts      too many wrong tokens or codes: says when to try again
├── NoResult             a run has ended without a result: carries its state, cause and reason
│   ├── RunFailed        it failed: carries the traceback of its last attempt, too
│   ├── RunCancelled     somebody or something stopped it
│   └── NotExecuted      it will never be executed: skipped, missed or expired
│       ├── QueueDropped a newer message pushed it out of its session's full queue
│       ├── LaneCleared  somebody cleared its lane
│       └── MessageStale its session was stopped after it had been sent
├── IllegalTransition    a run cannot go from this state to that one
├── NotLoadable          a stored row that this program cannot read
├── StoreError           the database refused or failed
│   ├── SchemaTooNew     the database is newer than the program: upgrade it
│   └── StoreUnavailable the database cannot be reached now
│       └── OutcomeUnknown  the connection broke during the commit: nobody knows whether it happened
├── WaitTimeout          a wait ran out of time; what it waited for goes on
├── NotRunning           only inside a running task, or with a started engine
├── SoftTimeout          raised inside a coroutine whose soft_timeout is over
├── Abort                raised by a task: fail now and do not retry
└── Snooze               raised by a task: try later, without counting this attempt
"""

from __future__ import annotations

from datetime import timedelta

__all__ = [
    "Abort",
    "AlreadyActive",
    "ChecksFailed",
    "Conflict",
    "Draining",
    "IllegalTransition",
    "InvalidInput",
    "KeyBusy",
    "LaneCleared",
    "LoginUnavailable",
    "MessageStale",
    "NoDatabase",
    "NoResult",
    "NotAllowed",
    "NotExecuted",
    "NotFound",
    "NotLoadable",
    "NotLoggedIn",
    "NotRunning",
    "OstinatoError",
    "OutcomeUnknown",
    "QueueDropped",
    "QueueFull",
    "RunCancelled",
    "RunFailed",
    "SchemaTooNew",
    "Snooze",
    "SoftTimeout",
    "StoreError",
    "StoreUnavailable",
    "TimingError",
    "TooManyAttempts",
    "VersionConflict",
    "WaitTimeout",
]


class OstinatoError(Exception):
    """The root: catch this to catch all of them."""


class TimingError(OstinatoError, ValueError):
    """A timing that cannot be. `position` is the index in `text` of what is wrong, `hint` a right form."""

    def __init__(self, message: str, *, text: str = "", position: int = 0, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.text = text
        self.position = position
        self.hint = hint
        self.field = "timing"
        """Where it was given; a door may know better."""

    def __str__(self) -> str:
        lines = [self.message]
        if self.text:
            lines += [f"  {self.text}", "  " + " " * self.position + "^"]
        if self.hint:
            lines.append(f"try: {self.hint}")
        return "\n".join(lines)


class InvalidInput(OstinatoError, ValueError):
    """A value that cannot be used. `field` names where it was given, `hint` a right form."""

    def __init__(self, message: str, *, field: str = "", hint: str = "") -> None:
        super().__init__(message if not hint else f"{message}; {hint}")
        self.field = field
        self.hint = hint


class NotFound(OstinatoError, LookupError):
    """There is no such thing; the message names it and where to look."""


class NoDatabase(NotFound):
    """There is no database where it was looked for, and what was asked for does not make one."""


class Conflict(OstinatoError):
    """The thing exists but is not in a state that allows this."""


class AlreadyActive(Conflict):
    """A trigger was refused: a run of the schedule is queued or running. Force it, or change the overlap policy."""


class KeyBusy(Conflict):
    """Somebody's transaction that is still open has enqueued with this key. Commit it, or try later."""


class ChecksFailed(Conflict):
    """A schedule cannot be enabled. `failures` maps each failed check to its reason."""

    def __init__(self, name: str, failures: dict[str, str]) -> None:
        listed = "; ".join(f"{check}: {reason}" for check, reason in failures.items())
        super().__init__(f"schedule {name!r} cannot be enabled, checks failed: {listed}")
        self.failures = failures


class VersionConflict(Conflict):
    """The row changed since it was read: read it again and repeat the change. `version` is what it has now."""

    def __init__(self, message: str, *, version: int | None = None) -> None:
        super().__init__(message)
        self.version = version


class QueueFull(Conflict):
    """The session's queue holds `cap` messages already, and `drop` is "new": nothing was queued."""


class Draining(Conflict):
    """This node is shutting down: it takes no more work. Others do."""


class NotLoggedIn(OstinatoError):
    """Nobody who is known: there is no token, login or code, or it does not hold (any more)."""


class NotAllowed(OstinatoError, PermissionError):
    """Somebody who is known and may not do this; the message names the role that may."""


class LoginUnavailable(OstinatoError):
    """The app that the page is mounted in does not say who is logged in. Try again later."""


class TooManyAttempts(OstinatoError):
    """Too many wrong tokens or codes came from there; the next is looked at in `retry_after` seconds."""

    def __init__(self, message: str, *, retry_after: int) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class NoResult(OstinatoError):
    """A run has ended without a result; raised to whoever asks for that. `run` is its number, `reason` a line for
    people, and `state` and `cause` are for programs. `traceback` is what its last attempt left."""

    def __init__(
        self,
        message: str,
        *,
        run: int | None = None,
        state: str | None = None,
        cause: str | None = None,
        reason: str | None = None,
        traceback: str | None = None,
    ) -> None:
        super().__init__(message)
        self.run = run
        self.state = state
        self.cause = cause
        self.reason = reason
        self.traceback = traceback
        if traceback:
            self.add_note(f"what its last attempt left:\n{traceback}")


class RunFailed(NoResult):
    """The last attempt that the run's retry policy allows ended in an error."""


class RunCancelled(NoResult):
    """A person, a policy or a newer run stopped it."""


class NotExecuted(NoResult):
    """A run that will never be executed; raised to whoever waits for it."""


class QueueDropped(NotExecuted):
    """A newer message pushed it out of its session's full queue."""


class LaneCleared(NotExecuted):
    """Somebody cleared its lane while it was queued."""


class MessageStale(NotExecuted):
    """Its session was stopped after it had been sent and before it was queued."""


class IllegalTransition(OstinatoError):
    """A run cannot go from this state to that one. It is a bug in the caller."""


class NotLoadable(OstinatoError):
    """A stored row that this program cannot read; it is shown as broken and never deleted."""


class StoreError(OstinatoError):
    """The database refused."""


class SchemaTooNew(StoreError):
    """The database was migrated by a newer Ostinato: upgrade this one."""


class StoreUnavailable(StoreError):
    """The database cannot be reached just now; the engine retries with backoff."""


class OutcomeUnknown(StoreUnavailable):
    """The connection broke during the commit: check whether the change was made before you repeat it."""


class WaitTimeout(OstinatoError, TimeoutError):
    """A wait ran out of time; what it waited for goes on."""


class NotRunning(OstinatoError):
    """This needs a started engine: call app.start() or run 'ostinato up'."""


class SoftTimeout(OstinatoError, TimeoutError):
    """Raised inside a coroutine that has run for as long as its `soft_timeout`: it may clean up, and end."""


class Abort(OstinatoError):
    """Raise it in a task to fail the run at once, whatever retries are left."""


class Snooze(OstinatoError):
    """Raise it in a task to be tried again after `delay`; the attempt is not counted."""

    def __init__(self, delay: timedelta | float | str, reason: str = "") -> None:
        super().__init__(reason or f"snoozed for {delay}")
        self.delay = delay
        self.reason = reason
