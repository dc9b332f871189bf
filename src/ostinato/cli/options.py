"""Flags that many commands share: only their names and types. `open_database.py` reads what they mean.

Those of a policy are made of its table, in `policy.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from cyclopts import Group, Parameter

__all__ = [
    "NO_COMMON",
    "NO_ENGINE",
    "NO_MESSAGE",
    "NO_TLS",
    "NO_WORK",
    "AgentFlags",
    "Causes",
    "Common",
    "EngineFlags",
    "HttpFlags",
    "LaneName",
    "Limit",
    "ListenHost",
    "ListenPort",
    "MessageFlags",
    "NodeName",
    "ProcessFlags",
    "ProjectName",
    "RunNumber",
    "ScheduleName",
    "SessionKey",
    "ShellFlags",
    "TaskFlags",
    "Text",
    "Texts",
    "TlsFlags",
    "Wait",
    "WaitTime",
    "WorkFlags",
    "Yes",
]

_TASK = Group("Task", sort_key=1)
_SHELL = Group("Shell", sort_key=2)
_AGENT = Group("Agent", sort_key=3)
_PROCESS = Group("Shell and agent", sort_key=4)
_HTTP = Group("HTTP", sort_key=5)
_COMMON = Group("Common", sort_key=10)

Text = Annotated[str | None, Parameter(allow_leading_hyphen=True)]
"""What may begin with a dash: a command, a prompt, a body."""
Texts = Annotated[list[str] | None, Parameter(allow_leading_hyphen=True)]

ScheduleName = Annotated[str, Parameter(help="The schedule.")]
LaneName = Annotated[str, Parameter(help="The lane.")]
ProjectName = Annotated[str, Parameter(help="The project.")]
RunNumber = Annotated[int, Parameter(help="The number of the run.")]
SessionKey = Annotated[str, Parameter(help="The session.")]
NodeName = Annotated[str, Parameter(help="The node as 'node ls' shows it, or 'all'.")]
Causes = Annotated[
    list[str] | None,
    Parameter(help="Only runs with this cause, such as timed_out or overlap; may be given again."),
]
Limit = Annotated[int, Parameter(alias="-n", show_default=True, help="At most this many.")]
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
class TlsFlags:
    """The certificate and key of the server."""

    tls_cert: str | None = None
    """Speak TLS with the certificate in this file (PEM, with its chain). [env: OSTINATO_TLS_CERT]"""
    tls_key: str | None = None
    """The file with its key. [env: OSTINATO_TLS_KEY]"""


@Parameter(name="*", group=_TASK)
@dataclass(frozen=True)
class TaskFlags:
    """A task and its arguments."""

    task: str | None = None
    """The task to run, by its name."""
    args: str | None = None
    """Its arguments, as a JSON array."""
    kwargs: str | None = None
    """Its keyword arguments, as a JSON object."""
    arg: list[str] | None = None
    """One keyword argument, name=value; may be given again."""


@Parameter(name="*", group=_SHELL)
@dataclass(frozen=True)
class ShellFlags:
    """A command, and what it may use."""

    shell: Text = None
    """The command to run, through sh; a JSON array of strings is run without a shell."""
    user: str | None = None
    """The user to run it as; the engine must run as root."""
    nice: str | None = None
    """Its niceness, -20 to 19. [default: the engine's own]"""
    memory: str | None = None
    """The most memory that each of its processes may have, such as 512MB. [default: none]"""
    cpu: str | None = None
    """The most processor time that each of its processes may take, such as 10m. [default: none]"""


@Parameter(name="*", group=_AGENT)
@dataclass(frozen=True)
class AgentFlags:
    """A prompt, and who gets it."""

    agent: Text = None
    """The prompt to give to an AI agent."""
    context: str | None = None
    """A new conversation (isolated), the project's (group), or session:NAME. [default: isolated]"""
    cli: str | None = None
    """Which agent: claude, or a name of 'agents' in ostinato.toml. [default: claude]"""
    model: str | None = None
    """The model that it uses. [default: the agent's own]"""
    system: Text = None
    """Text to add to its system prompt."""
    permission_mode: str | None = None
    """What it may do unasked, such as acceptEdits. [default: the agent's own]"""
    allowed_tool: list[str] | None = None
    """A tool that it may use unasked, such as "Bash(git *)"; may be given again."""
    mcp_config: str | None = None
    """The file that lists its MCP servers, or that JSON itself."""


@Parameter(name="*", group=_PROCESS)
@dataclass(frozen=True)
class ProcessFlags:
    """Where a command or an agent runs, and with what around it."""

    folder: str | None = None
    """The folder to run in, relative to the project's, or to the current one if there is no project."""
    env: Texts = None
    """A variable, NAME=VALUE; VALUE may be env:NAME or file:PATH, read at each start. May be given again."""


@Parameter(name="*", group=_HTTP)
@dataclass(frozen=True)
class HttpFlags:
    """A request, and which answers are good."""

    http: tuple[str, str] | None = None
    """The request to send: METHOD URL, such as POST https://example.com/hook"""
    header: Texts = None
    """A header, "Name: value"; may hold env:NAME or file:PATH, read at each start. May be given again."""
    data: Text = None
    """Its body, sent unchanged."""
    json_data: Text = None
    """Its body as JSON, sent with the content type of JSON."""
    expect: list[str] | None = None
    """A status that counts as a success, such as 204 or 2xx; may be given again. [default: 2xx]"""


@Parameter(name="*")
@dataclass(frozen=True)
class WorkFlags:
    """What to do: one of --task, --shell, --agent and --http, with the flags that go with it."""

    of_task: TaskFlags = TaskFlags()
    of_shell: ShellFlags = ShellFlags()
    of_agent: AgentFlags = AgentFlags()
    of_process: ProcessFlags = ProcessFlags()
    of_http: HttpFlags = HttpFlags()


@Parameter(name="*")
@dataclass(frozen=True)
class MessageFlags:
    """How a message waits in its session, and how its run is treated."""

    lane: str | None = None
    """The lane of its run. [default: the task's, or main]"""
    mode: Literal["queue", "followup", "interrupt"] | None = None
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
    retry: str | None = None
    """How many more attempts its run has, such as 5, or 5,base=1s,longest=1m. [default: the task's, or 3]"""
    priority: int | None = None
    """Higher goes first in its lane. [default: the task's, or 0]"""


NO_COMMON = Common()
NO_ENGINE = EngineFlags()
NO_TLS = TlsFlags()
NO_MESSAGE = MessageFlags()
NO_WORK = WorkFlags()
