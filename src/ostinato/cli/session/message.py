"""What a message is sent with, from flags: who gets it, and how its run is treated. For `session send` and `chat`."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from cyclopts import Group, Parameter

from ostinato.cli.options import MessageFlags
from ostinato.cli.policy import budget_option, limit_option, retry_option
from ostinato.cli.schedule.view import warn_of_no_engine, warn_of_unserved
from ostinato.cli.work import NOTHING, placed, said_fields
from ostinato.cli.work_flags import FLAGS, dashed, with_flags
from ostinato.errors import InvalidInput
from ostinato.models.installed_kinds import installed_kinds
from ostinato.models.work_values import Agent

if TYPE_CHECKING:
    from ostinato.cli.open_database import OpenDatabase

__all__ = ["NOBODY", "Recipient", "RecipientFlags", "message_options", "recipient_of", "warn_of_missing"]

_AGENT = installed_kinds()[Agent.kind]
_CONTEXT = "A new conversation with each run (isolated). [default: the conversation of the session goes on]"


def _with_agent_flags(cls: type[Any]) -> type[Any]:
    """The class with the flags of an agent; its prompt is the message."""
    flags = {name: flag for name, flag in FLAGS[_AGENT.name].items() if name != _AGENT.main_flag}
    flags["context"] = replace(flags["context"], help=_CONTEXT)
    return with_flags(cls, flags, dict.fromkeys(flags, Group(_AGENT.title, sort_key=1)))


@Parameter(name="*")
@_with_agent_flags
@dataclass(frozen=True)
class RecipientFlags:
    """Who gets a message: a task, or an agent with the flags that go with it."""

    task: Annotated[str | None, Parameter(help="The task that gets it, by its name.")] = None
    agent: Annotated[bool, Parameter(help="An AI agent gets it; the text is the prompt.")] = False


NOBODY = RecipientFlags()


class Recipient(NamedTuple):
    """Who gets a message, and in which project: one of a task and an agent."""

    task: str | None
    agent: Agent | None
    project: str | None

    def __str__(self) -> str:
        where = f", project {self.project}" if self.project else ""
        if self.agent is None:
            return f"task {self.task!r}{where}"
        model = f", model {self.agent.model}" if self.agent.model else ""
        return f"agent {self.agent.cli}{model}{where}"


def recipient_of(flags: RecipientFlags, project: str | None) -> Recipient | None:
    """Whom the flags name; None if they name nobody."""
    given = {name: value for name, value in vars(flags).items() if value is not None and name not in ("task", "agent")}
    if flags.agent and flags.task is not None:
        reason = "a message goes to a task or to an agent, not to both"
        raise InvalidInput(reason, field="agent", hint="give either --task or --agent")
    if given and not flags.agent:
        name = next(iter(given))
        raise InvalidInput(f"--{dashed(name)} goes with --agent", field=name, hint="give --agent too, or leave it out")
    home = None if project == NOTHING else project
    if flags.agent:
        agent = placed(Agent(**said_fields(_AGENT, given)), home)
        assert isinstance(agent, Agent)
        return Recipient(None, agent, home)
    return None if flags.task is None else Recipient(flags.task, None, home)


def message_options(flags: MessageFlags) -> dict[str, Any]:
    """How its run is treated: what was given, and only that."""
    given = asdict(flags)
    options = {name: given[name] for name in ("lane", "priority") if given[name] is not None}
    options |= limit_option("max_age", flags.max_age) | limit_option("timeout", flags.run_timeout)
    options |= limit_option("silent", flags.silent)
    options |= retry_option(flags.retry)
    return options if flags.budget is None else {**options, "budget": budget_option(flags.budget)}


def warn_of_missing(database: OpenDatabase, recipient: Recipient) -> None:
    """Say that no engine is there that could give them the message."""
    if recipient.task is None:
        warn_of_no_engine(database)
    else:
        warn_of_unserved(database, recipient.task)
