"""Flags that many commands share: only their names and types. `open_database.py` reads what they mean.

Those of a policy are made of its table, in `policy.py`, those of work of the descriptions of its kinds, in
`work_flags.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from cyclopts import Group, Parameter

from ostinato.logs import LogFormat, LogLevel

__all__ = [
    "NO_COMMON",
    "NO_ENGINE",
    "NO_LOG",
    "NO_MESSAGE",
    "NO_QUEUE",
    "NO_TLS",
    "CalendarName",
    "Causes",
    "ChannelName",
    "Common",
    "EngineFlags",
    "LaneName",
    "Limit",
    "ListenHost",
    "ListenPort",
    "LogFlags",
    "MessageFlags",
    "MetricsAddress",
    "Mode",
    "NodeName",
    "PageNumber",
    "ProjectName",
    "QueueFlags",
    "RunAfter",
    "RunNumber",
    "ScheduleName",
    "SessionKey",
    "Text",
    "Texts",
    "TlsFlags",
    "Wait",
    "WaitTime",
    "Yes",
]

_COMMON = Group("Common", sort_key=10)
_WAITING = Group(
    "Waiting", help="Where [sessions] in ostinato.toml or the task say another default, that holds.", sort_key=2
)

Text = Annotated[str | None, Parameter(allow_leading_hyphen=True)]
"""What may begin with a dash: a command, a prompt, a body."""
Texts = Annotated[list[str] | None, Parameter(allow_leading_hyphen=True)]

ScheduleName = Annotated[str, Parameter(help="The schedule: its name or its number.")]
ChannelName = Annotated[str, Parameter(help="The channel.")]
CalendarName = Annotated[str, Parameter(help="The calendar.")]
LaneName = Annotated[str, Parameter(help="The lane.")]
ProjectName = Annotated[str, Parameter(help="The project.")]
RunNumber = Annotated[int, Parameter(help="The number of the run.")]
SessionKey = Annotated[str, Parameter(help="The session.")]
NodeName = Annotated[str, Parameter(help="The node as 'node ls' shows it, or 'all'.")]
Causes = Annotated[
    list[str] | None,
    Parameter(help="Only runs with this cause, such as timed_out or overlap; may be given again."),
]
Mode = Literal["queue", "followup", "interrupt"] | None
Limit = Annotated[int, Parameter(alias="-n", show_default=True, help="At most this many.")]
RunAfter = Annotated[int | None, Parameter(help="Go on behind this run, the last one of the page before.")]
PageNumber = Annotated[int, Parameter(alias="-p", show_default=True, help="Which page of so many, from 1.")]
Yes = Annotated[bool, Parameter(help="Do not ask for confirmation.")]
Wait = Annotated[
    bool,
    Parameter(help="Wait until the run has ended: exit code 0 if it succeeded, 1 if not, 5 if the wait timed out."),
]
WaitTime = Annotated[str | None, Parameter(help="Wait at most this long, such as 30s.")]
ListenHost = Annotated[
    str | None,
    Parameter(
        help="The address to listen on; any other than loopback needs a token, and TLS or a trusted proxy. "
        "[default: 127.0.0.1]"
    ),
]
ListenPort = Annotated[int | None, Parameter(help="The port to listen on; 0 for any free port. [default: 8321]")]

MetricsAddress = Annotated[
    str | None,
    Parameter(
        help="Serve /metrics, /healthz and /readyz at this address, such as 127.0.0.1:9464, or 9464 alone; port 0 for "
        "any free port. Any address other than loopback needs a token, and TLS or a trusted proxy. "
        "[env: OSTINATO_METRICS, default: none]"
    ),
]


@Parameter(name="*", group=_COMMON)
@dataclass(frozen=True)
class Common:
    """Where the database is, which app to load, and how to print."""

    db: str | None = None
    """The database: a file, sqlite:///jobs.db or postgresql://… [env: OSTINATO_DB, default: ./ostinato.db]"""
    app: str | None = None
    """Load tasks and checks from module:attr, found from the current folder. [env: OSTINATO_APP]"""
    json: bool = False
    """Print JSON."""


@Parameter(name="*")
@dataclass(frozen=True)
class EngineFlags:
    """Settings of the engine that a command starts."""

    slots: int | None = None
    """How many runs this node executes at once. [default: 256]"""
    lane: list[str] | None = None
    """A lane and its limit on all nodes together, as NAME=LIMIT; may be given again."""
    rate: list[str] | None = None
    """How many runs of a lane may start in a time, as NAME=10/m; may be given again."""
    tz: str | None = None
    """The zone of schedules that have none of their own. [default: the machine's]"""


@Parameter(name="*")
@dataclass(frozen=True)
class LogFlags:
    """What a command that stays logs on stderr, and how."""

    log_level: LogLevel | None = None
    """The least that is logged. [env: OSTINATO_LOG_LEVEL, default: info; warning while up and web talk to a person]"""
    log_format: LogFormat | None = None
    """Lines of text with their times, or one JSON object a line; auto is text, but up and web talk to a person.
    [env: OSTINATO_LOG_FORMAT, default: auto]"""


@Parameter(name="*")
@dataclass(frozen=True)
class TlsFlags:
    """The certificate and key of the server."""

    tls_cert: str | None = None
    """Speak TLS with the certificate in this file (PEM, with its chain). [env: OSTINATO_TLS_CERT]"""
    tls_key: str | None = None
    """The file with its key. [env: OSTINATO_TLS_KEY]"""


@Parameter(name="*", group=_WAITING)
@dataclass(frozen=True)
class QueueFlags:
    """How a message waits in its session."""

    mode: Mode = None
    """Wait for the turn; wait until nothing is under way and go alone; or stop and drop the others. [default: queue]"""
    max_concurrent: int | None = None
    """How many runs of the session may be under way at once, from now on. [default: as before, 1 at first]"""
    cap: int | None = None
    """How many messages may be queued, a burst as one. [default: 10]"""
    drop: Literal["old", "new"] | None = None
    """Which message is dropped when the queue is full: the oldest, or this new one. [default: old]"""
    debounce: str | None = None
    """Messages that come within this of each other go into one run, such as 800ms; 0s for none. [default: 800ms]"""
    debounce_max: str | None = None
    """How long a burst may last, such as 5s. [default: ten times the debounce]"""
    message_id: str | None = None
    """An id; sending it to the session again does nothing, and prints the same run."""


@Parameter(name="*")
@dataclass(frozen=True)
class MessageFlags:
    """How the run of a message is treated."""

    lane: str | None = None
    """The lane of its run. [default: the task's, or main]"""
    retry: str | None = None
    """How many more attempts it has, such as 5, or 5,base=1s. [default: the task's, or 3; agents 3,covers=start]"""
    priority: int | None = None
    """Higher goes first in its lane. [default: the task's, or 0]"""
    max_age: str | None = None
    """It expires when it has waited longer than this, such as 1h. [default: the task's, or none]"""
    run_timeout: str | None = None
    """How long one attempt may take, such as 10m; 'none' for no limit. [default: the task's, or none; agents 30m]"""
    silent: str | None = None
    """An attempt that prints and reports nothing for this long is ended, such as 10m. [default: the task's, or none]"""
    budget: str | None = None
    """What it may cost, such as per_run_usd=1,per_day_usd=5. [default: the task's, or none]"""


NO_COMMON = Common()
NO_ENGINE = EngineFlags()
NO_LOG = LogFlags()
NO_TLS = TlsFlags()
NO_MESSAGE = MessageFlags()
NO_QUEUE = QueueFlags()
