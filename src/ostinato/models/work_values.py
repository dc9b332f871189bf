"""Our own kinds of work: function, shell, agent, http and check_in, each with its fields, checks and description.

`work_kinds.py` says what a description is, `work.py` is their JSON form. Like the former, this imports nothing heavy.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, ClassVar

from ostinato.durations import duration_text
from ostinato.errors import InvalidInput
from ostinato.models.interpreters import check_interpreter
from ostinato.models.policy_values import Retry, check_key, check_session, positive_duration
from ostinato.models.work_checks import (
    check_command,
    check_env,
    check_flag_value,
    check_kind,
    check_text,
    check_url,
    parse_size,
    processor_seconds,
)
from ostinato.models.work_kinds import ProcessWork, Shown, Work, WorkField, WorkKind

__all__ = ["OUR_KINDS", "Agent", "CheckIn", "Function", "Http", "Shell", "Unreadable"]

_seen = partial(WorkField, shown=Shown.VIEWERS)
_ENV = WorkField(
    "May hold references: env:NAME, file:PATH.",
    "Environment",
    secret=True,
    written="A variable, NAME=VALUE; VALUE may be env:NAME or file:PATH, read at each start. May be given again.",
)
_FOLDER = _seen(
    "Relative to the project's folder.",
    written="The folder to run in, relative to the project's, or to the current one if there is no project.",
)


@dataclass(frozen=True, slots=True)
class Function(Work):
    """Call a task by its name with these arguments."""

    kind: ClassVar[str] = "function"
    task: Annotated[str, _seen("The task to run, by its name.", longest=200)]
    args: Annotated[list[Any], _seen("Its arguments, as a JSON array.", "Arguments", example='[1, "two"]')] = field(
        default_factory=list
    )
    kwargs: Annotated[
        dict[str, Any],
        _seen(
            "Its keyword arguments, as a JSON object.",
            "Named arguments",
            example='{"name": "value"}',
            item_flag="arg",
            item_help="One keyword argument, name=value; may be given again.",
        ),
    ] = field(default_factory=dict)

    @property
    def needs(self) -> str | None:
        return self.task


GivenCall = tuple[Sequence[Any], Mapping[str, Any]]
"""The arguments of a call, as its caller gives them."""


@dataclass(frozen=True, slots=True)
class Shell(ProcessWork):
    """Run a command: a text goes through its interpreter, a list is executed as it is.

    `interpreter` is bash where the node has it and else sh, unless a name or a path is given, such as "python3". `env`
    may hold references to secrets (`env:NAME`, `file:PATH`). `folder` counts from the project's. `memory` is in bytes
    or such as "512MB", `cpu` in seconds of processor time.
    """

    kind: ClassVar[str] = "shell"
    command: Annotated[
        str | list[str],
        _seen(
            "A text for its interpreter, or the program and its arguments.",
            written="The command to run, a text for bash; a JSON array of strings runs without a shell.",
        ),
    ]
    interpreter: Annotated[
        str | None,
        _seen(
            "What runs the text: a name such as sh, zsh or python3, or a whole path.",
            otherwise="bash where the node has it, else sh",
        ),
    ] = field(default=None, kw_only=True)
    env: Annotated[dict[str, str], _ENV] = field(default_factory=dict)
    folder: Annotated[str | None, _FOLDER] = None
    user: Annotated[str | None, _seen("The user to run it as; the engine must run as root.")] = None
    nice: Annotated[int | None, _seen("Its niceness, -20 to 19.", otherwise="the engine's own")] = None
    memory: Annotated[
        int | str | None,
        _seen("The most memory that each of its processes may have, such as 512MB.", otherwise="none"),
    ] = None
    cpu: Annotated[
        float | str | None,
        _seen(
            "The most processor time that each of its processes may take, such as 10m.",
            "Processor time",
            otherwise="none",
            unit=" s",
        ),
    ] = None

    def __post_init__(self) -> None:
        check_command(self.command, "command")
        check_interpreter(self.interpreter, self.command)
        check_env(self.env)
        check_text("folder", self.folder)
        check_text("user", self.user)
        nice = self.nice
        if nice is not None and (isinstance(nice, bool) or not isinstance(nice, int) or not -20 <= nice <= 19):
            raise InvalidInput(
                f"nice cannot be {self.nice!r}", field="nice", hint="give -20 to 19; 10 is a low priority"
            )
        if self.memory is not None:
            object.__setattr__(self, "memory", parse_size(self.memory, "memory"))
        if self.cpu is not None:
            object.__setattr__(self, "cpu", processor_seconds(self.cpu))

    @property
    def line(self) -> str:
        return self.command if isinstance(self.command, str) else shlex.join(self.command)


@dataclass(frozen=True, slots=True)
class Agent(ProcessWork):
    """Give a prompt to an AI agent's command line.

    `cli` names one of settings.agents. `context` is `isolated` (a fresh conversation for each run), `group` (one
    continued conversation for the project) or `session:NAME` (the conversation of this session). Without it, a message
    to a session continues the conversation of that session, and all else is isolated. Only a message needs no prompt.
    """

    kind: ClassVar[str] = "agent"
    prompt: Annotated[
        str,
        _seen(
            "The prompt to give to an AI agent.", missing="an agent needs a prompt", example="Summarise the new issues"
        ),
    ] = ""
    context: Annotated[
        str | None,
        _seen("A new conversation (isolated), the project's (group), or session:NAME.", otherwise="isolated"),
    ] = None
    cli: Annotated[
        str, _seen("Which agent: claude, codex, gemini, opencode, or a name of 'agents' in ostinato.toml.", "CLI")
    ] = "claude"
    model: Annotated[str | None, _seen("The model that it uses.", otherwise="the agent's own")] = None
    system: Annotated[str | None, _seen("Text to add to its system prompt.", "System prompt", clear="")] = None
    permission_mode: Annotated[
        str | None, _seen("What it may do unasked, such as acceptEdits.", otherwise="the agent's own")
    ] = None
    allowed_tools: Annotated[
        list[str],
        _seen(
            'Tools that it may use unasked, such as "Bash(git *)".',
            flag="allowed_tool",
            written='A tool that it may use unasked, such as "Bash(git *)"; may be given again.',
        ),
    ] = field(default_factory=list)
    mcp_config: Annotated[
        str | None, _seen("The file that lists its MCP servers, or that JSON itself.", "MCP config")
    ] = None
    env: Annotated[dict[str, str], _ENV] = field(default_factory=dict)
    folder: Annotated[str | None, _FOLDER] = None

    def __post_init__(self) -> None:
        if not isinstance(self.prompt, str) or (self.prompt and not self.prompt.strip()):
            raise InvalidInput("an agent needs a prompt", field="prompt", hint="such as Summarise the new issues")
        _check_context(self.context)
        check_key(self.cli, "cli", "give the name of an agent, such as claude")
        check_text("system", self.system)
        for what in ("model", "permission_mode", "mcp_config"):
            check_flag_value(what, getattr(self, what))
        check_kind("allowed_tools", self.allowed_tools, list, 'a list of names, such as ["Read"]')
        for tool in self.allowed_tools:
            check_flag_value("allowed_tools", tool)
        check_env(self.env)
        check_text("folder", self.folder)

    @property
    def is_continued(self) -> bool:
        """Whether it goes on with a conversation, and does not begin a new one each time."""
        return self.context not in _FRESH

    def conversation(self, project: str | None) -> str | None:
        """The key of the conversation that it continues; None for a fresh one."""
        if not self.is_continued:
            return None
        return f"{self.cli}/{self.context}" + (f"/{project}" if self.context == "group" and project else "")

    def turn(self, project: str | None) -> str | None:
        """The session of its conversation; a named one is the session of this name, where others send messages."""
        if self.context in (*_FRESH, "group"):
            return ProcessWork.turn(self, project)
        return self.context.removeprefix(_NAMED)


_FRESH = (None, "isolated")
_NAMED = "session:"


def _check_context(context: Any) -> None:
    """A context of an agent; the name of a conversation is the key of a session."""
    if context in (*_FRESH, "group"):
        return
    if not isinstance(context, str) or not context.removeprefix(_NAMED).strip() or not context.startswith(_NAMED):
        raise InvalidInput(
            f"context cannot be {context!r}", field="context", hint="it is isolated, group or session:NAME"
        )
    check_session(context.removeprefix(_NAMED), "context")


@dataclass(frozen=True, slots=True)
class Http(Work):
    """Send a request. A status that is not among `expect` fails the run.

    A status is a number such as 204, or a class such as "2xx". `headers` may hold references to secrets: `env:NAME`,
    `Bearer file:PATH`.
    """

    kind: ClassVar[str] = "http"
    method: Annotated[
        str,
        _seen(
            "Such as GET or POST.",
            standard="GET",
            written="The request to send: METHOD URL, such as POST https://example.com/hook",
        ),
    ]
    url: Annotated[str, WorkField("Where to.", "URL", shown=Shown.WITHOUT_QUERY)]
    headers: Annotated[
        dict[str, str],
        WorkField(
            "May hold references: env:NAME, Bearer file:PATH.",
            secret=True,
            flag="header",
            sign=":",
            written='A header, "Name: value"; may hold env:NAME or file:PATH, read at each start. May be given again.',
        ),
    ] = field(default_factory=dict)
    json: Annotated[
        Any,
        WorkField(
            "Its body as JSON, sent with the content type of JSON.",
            "JSON body",
            flag="json_data",
            instead_of="body",
            example='{"text": "done"}',
        ),
    ] = None
    body: Annotated[
        str | None, WorkField("Its body, sent unchanged.", "Text body", flag="data", instead_of="json", clear="")
    ] = None
    expect: Annotated[
        list[int | str],
        _seen(
            'For example 204 or "2xx".',
            "Expected status",
            written="A status that counts as a success, such as 204 or 2xx; may be given again. [default: 2xx]",
        ),
    ] = field(default_factory=lambda: ["2xx"])

    def __post_init__(self) -> None:
        if not isinstance(self.method, str) or not re.fullmatch(r"[A-Za-z]{1,20}", self.method):
            raise InvalidInput(f"method cannot be {self.method!r}", field="method", hint="such as GET or POST")
        object.__setattr__(self, "method", self.method.upper())
        check_url(self.url)
        check_kind("headers", self.headers, dict, 'names and values, such as {"Accept": "*/*"}')
        for name, value in self.headers.items():
            good = isinstance(name, str) and isinstance(value, str)
            if not good or not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name) or re.search(r"[\r\n\0]", value):
                raise InvalidInput(f"a header cannot be {name!r}: {value!r}", field="headers", hint="as in Accept: */*")
        check_kind("body", self.body or "", str, "text, or json instead")
        if self.json is not None and self.body is not None:
            raise InvalidInput("give either json or body, not both", field="body")
        check_kind("expect", self.expect or None, list, 'a list such as [204] or ["2xx"]')
        for status in self.expect:
            if not re.fullmatch(r"[1-5]\d\d|[1-5]xx", str(status)):
                raise InvalidInput(f"expect cannot be {status!r}", field="expect", hint="such as 204 or 2xx")

    @property
    def line(self) -> str:
        return f"{self.method} {self.url}"

    @property
    def needs(self) -> str | None:
        return None

    def expects(self, status: int) -> bool:
        """Whether an answer of this status is a success."""
        return any(str(wanted) in (str(status), f"{status // 100}xx") for wanted in self.expect)


@dataclass(frozen=True, slots=True)
class CheckIn(Work):
    """Wait for a machine that does the work by itself, such as from its own crontab, to check in at the schedule's
    ping address. Without a check-in in time, people are told."""

    kind: ClassVar[str] = "check_in"
    late_after: Annotated[
        str, _seen("How long after its due time it may check in before it is late.", example="10m", longest=50)
    ] = "10m"

    def __post_init__(self) -> None:
        object.__setattr__(self, "late_after", duration_text(positive_duration("late_after", self.late_after)))

    @property
    def line(self) -> str:
        return f"a check-in, late after {self.late_after}"

    @property
    def needs(self) -> str | None:
        return None


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Stored work that this program cannot read: kept as it is, shown as broken, never executed.

    Work of a kind that a package adds may be another node's: then `needs` says what that node must know.
    """

    text: str
    reason: str
    kind: str = "unreadable"
    needs: str | None = None

    @property
    def line(self) -> str:
        """Why it cannot be read."""
        return self.reason


_EXECUTORS = "ostinato.execution.executors"
_BEFORE_IT_BEGAN = Retry(covers="start")
"""An agent that acted is not to act again unless somebody asks for that."""

OUR_KINDS = (
    WorkKind(Function, "", "Task", needs_admin=False, flag="task", bare=True, fresh=True),
    WorkKind(Shell, f"{_EXECUTORS}.shell:Shells", "Shell", "5m", break_after=3, bare=True),
    WorkKind(Agent, f"{_EXECUTORS}.agent.executor:Agents", "Agent", "30m", _BEFORE_IT_BEGAN, 3, bare=True),
    WorkKind(
        Http,
        f"{_EXECUTORS}.http.executor:HttpCalls",
        "HTTP",
        "1m",
        break_after=3,
        needs_admin=False,
        main=("method", "url"),
        bare=True,
    ),
    WorkKind(CheckIn, "", "Check-in", needs_admin=False, bare=True, is_switch=True),
)
"""In the order in which people see them."""
