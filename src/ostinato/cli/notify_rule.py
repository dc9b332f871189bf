"""`ostinato notify rule`: what a channel is told, of one project or of all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from ostinato.cli.console import Cell, Column, emit_json, table, tell
from ostinato.cli.open_database import opened
from ostinato.cli.options import NO_COMMON, ChannelName, Common
from ostinato.errors import InvalidInput

if TYPE_CHECKING:
    from ostinato.service.notifications import ChannelRule

__all__ = ["app", "rule_line"]

app = App(name="rule", help="Add, list and remove rules: what a channel is told, of one project or of all.")


@app.command
def add(
    channel: ChannelName,
    /,
    *,
    on: str | None = None,
    project: str | None = None,
    everything: Annotated[bool, Parameter(name="--all")] = False,
    digest: str | None = None,
    tz: str | None = None,
    common: Common = NO_COMMON,
) -> None:
    """Tell a channel what happens in a project, or everywhere. It replaces the rule of the same channel and project.

    Parameters
    ----------
    on
        What it is told of, separated by commas: failed (after the last attempt), broken, recovered, missed, late,
        succeeded, run (every end). [default: the first five; with --digest, nothing else]
    project
        Only what belongs to this project.
    everything
        What belongs to any project, or to none.
    digest
        Send a summary of all runs at these times, such as 'daily 08:00'.
    tz
        The zone of these times. [default: that of the settings]
    """
    if everything is (project is not None):
        hint = "give --project NAME, or --all for all of them"
        raise InvalidInput("a rule is for one project or for all", field="project", hint=hint)
    with opened(common, create=True) as database:
        rule, did = database.ask(
            database.services.notifications.put_rule(channel, on, project=project, digest=digest, tz=tz)
        )
    tell(rule, f"{did}: {rule_line(rule)}, for {channel!r}", as_json=common.json)


@app.command
def ls(*, common: Common = NO_COMMON) -> None:
    """List rules."""
    with opened(common) as database:
        rules = database.ask(database.services.notifications.rules())
    if common.json:
        emit_json(rules)
        return
    columns = [Column("ID"), *(Column(title, flexible=True) for title in ("CHANNEL", "PROJECT", "ON", "DIGEST"))]
    rows: list[list[Cell]] = [
        [str(rule.id), rule.channel, rule.project or "(all)", ",".join(rule.on) or "-", _digest(rule) or "-"]
        for rule in rules
    ]
    table(columns, rows, otherwise="no rules: add one with 'ostinato notify rule add --on failed,broken --all CHANNEL'")


@app.command
def rm(id: int, /, *, common: Common = NO_COMMON) -> None:
    """Remove a rule.

    Parameters
    ----------
    id
        Its number, as 'notify rule ls' shows it.
    """
    with opened(common) as database:
        database.ask(database.services.notifications.remove_rule(id))
    tell({"id": id, "removed": True}, f"removed: rule {id}", as_json=common.json)


def rule_line(rule: ChannelRule) -> str:
    """A rule on one line."""
    scope = "everything" if rule.project is None else f"project {rule.project!r}"
    told = ", ".join(rule.on) or "nothing at once"
    digest = _digest(rule)
    return f"rule {rule.id}: {told}, of {scope}" + (f", a digest {digest}" if digest else "")


def _digest(rule: ChannelRule) -> str:
    return "" if rule.digest is None else f"{rule.digest} ({rule.zone})"
