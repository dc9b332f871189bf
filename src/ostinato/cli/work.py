"""From flags to work: a task with its arguments, a command, a prompt or a request. Pure; nothing is looked up.

`work_of` makes it anew, for `schedule add` and `exec`; `edited_work` changes what a schedule has.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from ostinato.cli.options import WorkFlags
from ostinato.errors import Conflict, InvalidInput
from ostinato.models.nesting import too_deep

if TYPE_CHECKING:
    from ostinato.models.work import Function, Unreadable, Work

__all__ = [
    "NOTHING",
    "as_command",
    "edited_work",
    "json_or_text",
    "placed",
    "whole",
    "work_env",
    "work_of",
]

NOTHING = "none"
"""What takes away what is there."""

_ONE_OF = "--task, --shell, --agent and --http"


def work_of(flags: WorkFlags) -> Work:
    """The work that the flags name; exactly one of the four kinds must be."""
    kind = _chosen(flags)
    if kind is None:
        hint = "such as --shell 'restic backup /srv' or --http POST https://example.com/hook"
        raise InvalidInput(f"there is nothing to do: give one of {_ONE_OF}", field="work", hint=hint)
    _refuse_others(flags, kind)
    return _make(kind, flags)


def edited_work(flags: WorkFlags, current: Work | Unreadable) -> Work | None:
    """The work with what was given, or another one; None if nothing was."""
    from ostinato.models.work import Unreadable

    chosen = _chosen(flags)
    if chosen is None and not any(_given(group) for group, _ in _groups(flags)):
        return None
    kind = chosen or current.kind
    if isinstance(current, Unreadable):
        if chosen is None:
            raise Conflict(f"the work of this schedule cannot be read: give it a new one with one of {_ONE_OF}")
        _refuse_others(flags, kind)
        return _make(kind, flags)
    _refuse_others(flags, kind)
    return _make(kind, flags) if kind != current.kind else _changed(kind, flags, current)


def placed(work: Work, project: str | None) -> Work:
    """The work with the folder that is meant here: without a project, a relative one counts from the current one."""
    from ostinato.models.work import Agent, Shell

    if project is not None or not isinstance(work, (Shell, Agent)) or work.folder is None:
        return work
    return replace(work, folder=os.path.abspath(os.path.expanduser(work.folder)))


def _groups(flags: WorkFlags) -> Sequence[tuple[Any, tuple[str, ...]]]:
    """The flags, with the kinds of work that they go with."""
    return (
        (flags.of_task, ("function",)),
        (flags.of_shell, ("shell",)),
        (flags.of_agent, ("agent",)),
        (flags.of_process, ("shell", "agent")),
        (flags.of_http, ("http",)),
    )


def _given(group: Any) -> dict[str, Any]:
    values = {field.name: getattr(group, field.name) for field in fields(group)}
    return {name: value for name, value in values.items() if value is not None}


def _chosen(flags: WorkFlags) -> str | None:
    """The kind of work that was named."""
    named = {
        "function": flags.of_task.task,
        "shell": flags.of_shell.shell,
        "agent": flags.of_agent.agent,
        "http": flags.of_http.http,
    }
    kinds = [kind for kind, value in named.items() if value is not None]
    if len(kinds) > 1:
        both = " and ".join(_flag(kind) for kind in kinds)
        raise InvalidInput(f"a schedule does one thing, not {both}", field="work", hint=f"give one of {_ONE_OF}")
    return kinds[0] if kinds else None


def _flag(kind: str) -> str:
    return "--task" if kind == "function" else f"--{kind}"


def _refuse_others(flags: WorkFlags, kind: str) -> None:
    """A flag that would be without effect is a mistake."""
    for group, kinds in _groups(flags):
        if kind not in kinds and (given := _given(group)):
            name = next(iter(given))
            wanted = " or ".join(_flag(one) for one in kinds)
            raise InvalidInput(
                f"--{name.replace('_', '-')} goes with {wanted}, not with {_flag(kind)}",
                field=name,
                hint="leave it out",
            )


def _make(kind: str, flags: WorkFlags) -> Work:
    from ostinato.models.work import Agent, Function, Http, Shell

    said = _said(kind, flags)
    match kind:
        case "function":
            return Function(**said)
        case "shell":
            return Shell(**said)
        case "agent":
            return Agent(**said)
        case _:
            return Http(**said)


def _changed(kind: str, flags: WorkFlags, current: Work) -> Work:
    from ostinato.models.work import Function

    if isinstance(current, Function):
        return _changed_call(flags, current)
    return replace(current, **_said(kind, flags, current))


def _changed_call(flags: WorkFlags, current: Function) -> Function:
    """The call with what was given; another task starts with no arguments."""
    given = flags.of_task
    positional, keywords = _call_arguments(given.args, given.kwargs, given.arg)
    if given.task is not None and given.task != current.task:
        return replace(current, task=given.task, args=positional, kwargs=keywords)
    if given.kwargs is None:
        keywords = {**current.kwargs, **keywords}
    return replace(current, args=current.args if given.args is None else positional, kwargs=keywords)


def _said(kind: str, flags: WorkFlags, current: Any = None) -> dict[str, Any]:
    """The fields of the work that were given."""
    match kind:
        case "function":
            positional, keywords = _call_arguments(flags.of_task.args, flags.of_task.kwargs, flags.of_task.arg)
            return {"task": flags.of_task.task, "args": positional, "kwargs": keywords}
        case "shell":
            return {**_of_shell(flags), **_of_process(flags, current)}
        case "agent":
            return {**_of_agent(flags), **_of_process(flags, current)}
        case _:
            return _of_http(flags, current)


def _or_nothing(given: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: None if given[name] == NOTHING else given[name] for name in names if name in given}


def _of_shell(flags: WorkFlags) -> dict[str, Any]:
    given = _given(flags.of_shell)
    said = _or_nothing(given, "user", "memory", "cpu")
    if "shell" in given:
        said["command"] = as_command(given["shell"])
    if "nice" in given:
        said["nice"] = None if given["nice"] == NOTHING else whole("nice", given["nice"])
    return said


def _of_agent(flags: WorkFlags) -> dict[str, Any]:
    given = _given(flags.of_agent)
    said = _or_nothing(given, "model", "permission_mode", "mcp_config")
    for name in ("context", "cli"):
        if name in given:
            said[name] = given[name]
    if "agent" in given:
        said["prompt"] = given["agent"]
    if "system" in given:
        said["system"] = given["system"] or None
    if "allowed_tool" in given:
        said["allowed_tools"] = [] if given["allowed_tool"] == [NOTHING] else given["allowed_tool"]
    return said


def _of_process(flags: WorkFlags, current: Any) -> dict[str, Any]:
    given = flags.of_process
    said: dict[str, Any] = {}
    if given.folder is not None:
        said["folder"] = None if given.folder == NOTHING else given.folder
    if given.env is not None:
        said["env"] = work_env(given.env, {} if current is None else current.env)
    return said


def _of_http(flags: WorkFlags, current: Any) -> dict[str, Any]:
    given = flags.of_http
    said: dict[str, Any] = {}
    if given.http is not None:
        said["method"], said["url"] = given.http
    if given.header is not None:
        said["headers"] = _headers(given.header, {} if current is None else current.headers)
    if given.data is not None and given.json_data is not None:
        raise InvalidInput("give either --data or --json-data, not both", field="data")
    if given.data is not None:
        said |= {"body": given.data or None, "json": None}
    if given.json_data is not None:
        said |= {"json": _json("json-data", given.json_data, '{"text": "done"}'), "body": None}
    if given.expect is not None:
        said["expect"] = [int(status) if status.isdecimal() else status.lower() for status in given.expect]
    return said


def as_command(text: str) -> str | list[str]:
    """A command for a shell, or, from a JSON array of texts, the program and its arguments."""
    value = json_or_text(text) if text.lstrip().startswith("[") else text
    if isinstance(value, str):
        return text
    if not value or not all(isinstance(part, str) for part in value):
        hint = """write '["head", "-n", "5"]', or leave out the brackets for a shell"""
        raise InvalidInput(f"a command cannot be {text}", field="command", hint=hint)
    return list(value)


def work_env(pairs: Sequence[str], before: Mapping[str, str]) -> dict[str, str]:
    """Variables, `NAME=VALUE`, put to those from before; 'none' takes those away."""
    env = {} if NOTHING in pairs else dict(before)
    return env | dict(_pairs("env", pairs, "=", "--env NAME=VALUE"))


def _headers(lines: Sequence[str], before: Mapping[str, str]) -> dict[str, str]:
    """Headers, `Name: value`, put to those from before; 'none' takes those away."""
    headers = {} if NOTHING in lines else dict(before)
    for name, value in _pairs("header", lines, ":", '--header "Name: value"'):
        same = next((known for known in headers if known.lower() == name.strip().lower()), name.strip())
        headers[same] = value.strip()
    return headers


def _pairs(flag: str, given: Sequence[str], sign: str, example: str) -> Iterator[tuple[str, str]]:
    """What stands before and behind the sign."""
    for text in given:
        name, found, value = text.partition(sign)
        if text == NOTHING:
            continue
        if not found or not name.strip():
            raise InvalidInput(f"--{flag} cannot be {text!r}", field=flag, hint=f"write {example}")
        yield name, value


def whole(field: str, text: str) -> int:
    """A whole number from text."""
    try:
        return int(text)
    except ValueError:
        raise InvalidInput(f"{field} cannot be {text!r}", field=field, hint="give a whole number") from None


def _call_arguments(args: str | None, kwargs: str | None, named: list[str] | None) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of a task, from `--args '[1]'`, `--kwargs '{"a": 1}'` and `--arg a=1`."""
    positional = _json("args", args, '[1, "two"]', list) if args is not None else []
    keywords = _json("kwargs", kwargs, '{"name": "value"}', dict) if kwargs is not None else {}
    for pair in named or []:
        name, equals, value = pair.partition("=")
        if not equals or not name.isidentifier():
            raise InvalidInput(f"--arg cannot be {pair!r}", field="arg", hint="write --arg name=value")
        keywords[name] = json_or_text(value)
    return positional, keywords


def json_or_text(text: str) -> Any:
    """JSON where it is JSON (`3`, `true`, `[1]`), else the text itself."""
    try:
        return json.loads(text, parse_constant=_no_constant)
    except RecursionError:
        raise too_deep("the JSON is", "arg") from None
    except ValueError:
        return text


def _no_constant(name: str) -> Any:
    """Python would take `NaN` and `Infinity` for numbers, but they are not JSON."""
    raise ValueError(f"{name} is not JSON")


def _json(field: str, text: str, example: str, kind: type = object) -> Any:
    try:
        value = json.loads(text, parse_constant=_no_constant)
    except RecursionError:
        raise too_deep(f"--{field} is", field) from None
    except ValueError as error:
        raise InvalidInput(
            f"--{field} is not JSON: {error}", field=field, hint=f"write --{field} '{example}'"
        ) from None
    if not isinstance(value, kind):
        raise InvalidInput(f"--{field} cannot be {text}", field=field, hint=f"write --{field} '{example}'")
    return value
