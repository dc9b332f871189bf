"""What this process can execute: tasks and checks by name. Filled by the app's decorators, read by the runner."""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sized
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from ostinato.errors import InvalidInput, NotFound
from ostinato.execution.arguments import TaskSignature, unknown_signature
from ostinato.execution.binding import ContextParameter, find_context_parameter
from ostinato.execution.context import current_context
from ostinato.execution.output import storable
from ostinato.execution.threads import on_own_thread
from ostinato.execution.throttle import Throttle
from ostinato.listeners import Listeners
from ostinato.logs import one_line
from ostinato.models.ids import RunId
from ostinato.models.policy import check_soft_timeout, make_policy
from ostinato.models.run import OuterRun, outer_run_of
from ostinato.models.session_options import NO_OPTIONS, SessionOptions
from ostinato.models.task import TaskDescription, TaskKind, TaskSchedule
from ostinato.models.work_kinds import check_task
from ostinato.models.work_values import Function, GivenCall
from ostinato.plurals import a_or_an
from ostinato.task_contexts import TaskContexts
from ostinato.tuning import DEFAULT_TUNING

__all__ = ["Check", "Isolation", "Registry", "TaskDefinition", "name_of_task"]

Isolation = Literal["none", "process"]
Check = Callable[[], bool | str | Awaitable[bool | str | None] | None]
"""True or None passes; False or a text (the reason) fails; raising fails, and so does taking too long."""


def name_of_task(function: Callable[..., Any]) -> str:
    """The name of a function, for a task that was given none."""
    name = getattr(function, "__name__", "<lambda>")
    if name == "<lambda>":
        kind = "a lambda" if inspect.isfunction(function) else a_or_an(type(function).__name__)
        raise InvalidInput(
            f"{kind} has no name of its own, and a task needs one", field="name", hint="give one: app.task('mail')(…)"
        )
    return str(name)


@dataclass(frozen=True, slots=True)
class TaskDefinition:
    """A function under a name, and how its runs are treated unless somebody says otherwise."""

    name: str
    function: Callable[..., Any]
    options: Mapping[str, Any]
    """The policy as it was given with the task."""
    isolation: Isolation
    is_async: bool
    context_parameter: ContextParameter | None
    requeue_on_drain: bool = False
    """Whether a run that its node cut off goes back to the queue as if that attempt had not been."""
    session_options: SessionOptions = NO_OPTIONS
    """How messages for it wait in their sessions."""
    contexts: TaskContexts = field(default_factory=TaskContexts)
    """Those of its app."""
    signature: TaskSignature | None = None
    """What it takes and returns; None for what a package executes its kind of work with."""

    @property
    def description(self) -> TaskDescription:
        """In words."""
        kind: TaskKind = "process" if self.isolation == "process" else "async" if self.is_async else "sync"
        return TaskDescription(kind, (self.function.__doc__ or "").strip().partition("\n")[0].strip() or None)

    def check_schedulable(self) -> None:
        """A schedule that the code declares gives no arguments: whatever needs one would fail each time."""
        required = [] if self.signature is None else self.signature.required
        if required:
            raise InvalidInput(
                f"task {self.name!r} cannot be scheduled here: its schedule gives no arguments, and it needs "
                + ", ".join(map(repr, required)),
                field="schedule",
                hint=f"give defaults, or add a schedule of a call: Function({self.name!r}, [arguments])",
            )


@dataclass(slots=True)
class Registry:
    """Tasks, checks and callbacks of one app."""

    tasks: dict[str, TaskDefinition] = field(default_factory=dict)
    checks: dict[str, Check] = field(default_factory=dict)
    throttle: Throttle = field(default_factory=Throttle)
    listeners: Listeners = field(default_factory=Listeners)
    on_new_task: Callable[[str], None] | None = None
    """Told the name of a task that was added."""
    find_task: Callable[[str], bool] | None = None
    """Asked for the name of a task that no node knows: imports and registers it, if it is one, and says whether it has.
    It is called on a thread, and must not raise."""
    check_seconds: float = DEFAULT_TUNING.check_seconds
    contexts: TaskContexts = field(default_factory=TaskContexts)
    declared: dict[str, TaskSchedule] = field(default_factory=dict)
    """The schedules that were declared with tasks, by name."""
    decorator: str = "@app.task"
    """What registers tasks, as people write it."""

    def __post_init__(self) -> None:
        self.listeners.contexts = self.contexts

    def add_task(
        self,
        name: str,
        function: Callable[..., Any],
        options: Mapping[str, Any],
        isolation: Isolation = "none",
        *,
        requeue_on_drain: bool = False,
        session_options: SessionOptions = NO_OPTIONS,
        scheduled: bool = False,
    ) -> TaskDefinition:
        """Register a function; the same function again is no error, another under a taken name is. What is refused is
        not registered."""
        check_task(name, f"give it another name: {self.decorator}('mail')")
        known = self.tasks.get(name)
        if known is not None and _place(known.function) != _place(function):
            raise InvalidInput(
                f"task {name!r} is already {_place(known.function)}; it cannot also be {_place(function)}",
                field="name",
                hint=f"give one of them another name: {self.decorator}({_longer_name(name, function)!r})",
            )
        if isolation not in ("none", "process"):
            raise InvalidInput(f"isolation cannot be {isolation!r}", field="isolation", hint="use 'none' or 'process'")
        if not isinstance(requeue_on_drain, bool):
            raise InvalidInput(
                f"requeue_on_drain cannot be {requeue_on_drain!r}", field="requeue_on_drain", hint="use True or False"
            )
        if isolation == "process" and not hasattr(function, "__qualname__"):
            raise InvalidInput(
                f"task {name!r} is {a_or_an(type(function).__name__)}, which a process of its own cannot import",
                field="isolation",
                hint="define a function at the top of a module",
            )
        _check_no_method(name, function)
        check_soft_timeout(make_policy(options))  # a wrong policy is told where it is written, not at the first run
        context = find_context_parameter(function)
        definition = TaskDefinition(
            name,
            function,
            options,
            isolation,
            inspect.iscoroutinefunction(function),
            context,
            requeue_on_drain,
            session_options,
            self.contexts,
            TaskSignature(name, function, context),
        )
        if scheduled:
            definition.check_schedulable()
        self.tasks[name] = definition
        if self.on_new_task is not None:
            self.on_new_task(name)
        return definition

    def add_check(self, name: str, function: Check) -> None:
        """Register a check."""
        self.checks[name] = function

    def takes_payloads(self, task: str) -> bool | None:
        """Whether a task can be called with `payloads`; None if it is not known here."""
        definition = self.tasks.get(task)
        if definition is None:
            return None
        parameters = inspect.signature(definition.function).parameters.values()
        return any(
            parameter.kind is parameter.VAR_KEYWORD
            or (parameter.name == "payloads" and parameter.kind is not parameter.POSITIONAL_ONLY)
            for parameter in parameters
        )

    def described_tasks(self) -> Mapping[str, TaskDescription]:
        """What people are told of each task."""
        return {
            name: replace(definition.description, declared=self.declared.get(name))
            for name, definition in tuple(self.tasks.items())
        }

    async def stored_calls(self, task: str, calls: Iterable[GivenCall], *, from_json: bool = False) -> list[Function]:
        """The same, as others ask for it whose code is in another process."""
        return self.encode_calls(task, calls, from_json=from_json)

    def encode_calls(self, task: str, calls: Iterable[GivenCall], *, from_json: bool = False) -> list[Function]:
        """Calls of a task as they are stored; InvalidInput names the argument that does not fit, and of several calls
        the one that has it. `from_json`: given where there is only JSON, so that text may stand for bytes."""
        definition = self.tasks.get(task)
        signature = None if definition is None else definition.signature
        encode = (signature or unknown_signature(task)).encode
        stored: list[Function] = []
        store = stored.append
        try:
            for args, kwargs in calls:
                by_position, by_name = encode(args, kwargs, from_json)
                store(Function(task, by_position, by_name))
        except InvalidInput as error:
            if not isinstance(calls, Sized) or len(calls) > 1:
                error.args = (f"calls[{len(stored)}]: {error}",)
            raise
        return stored

    async def failed_checks(self, names: Iterable[str]) -> dict[str, str]:
        """Run the checks of these names and answer the failed ones, each with its reason."""
        reasons = {name: await self._why_not(name) for name in names}
        return {name: storable(reason) for name, reason in reasons.items() if reason is not None}

    async def _why_not(self, name: str) -> str | None:
        """Why a check fails, or None if it passes."""
        check = self.checks.get(name)
        if check is None:
            known = ", ".join(sorted(self.checks)) or "none"
            return f"no check of this name is registered here (known: {known})"
        try:
            async with asyncio.timeout(self.check_seconds):
                verdict = await _verdict(check, self.contexts)
        except TimeoutError:  # what a check raises itself is its verdict
            return f"took longer than {self.check_seconds:g}s"
        if isinstance(verdict, str):
            return verdict
        return "said no" if verdict is False else None

    def own_run(self) -> RunId | None:
        """The run that calls from within its own work."""
        context = current_context.get(None)
        return None if context is None else context.id

    @contextmanager
    def waiting(self) -> Iterator[OuterRun | None]:
        """While the run that calls from within its own work, which is the answer, waits for another one."""
        context = current_context.get(None)
        if context is None or context.claimed.node is None:
            yield outer_run_of(os.environ) if context is None else None
            return
        context.waits += 1
        if context.on_wait is not None:
            context.on_wait()
        try:
            yield OuterRun(context.id, context.claimed.node)
        finally:
            context.waits -= 1

    def options_of(self, task: str) -> Mapping[str, Any]:
        """The policy that was given with a task; nothing if it is not known here."""
        definition = self.tasks.get(task)
        return {} if definition is None else definition.options

    def session_options_of(self, task: str) -> SessionOptions:
        """How messages for a task wait in their sessions; nothing if it is not known here."""
        definition = self.tasks.get(task)
        return NO_OPTIONS if definition is None else definition.session_options

    def task(self, name: str) -> TaskDefinition:
        """The task of this name; NotFound says which there are."""
        try:
            return self.tasks[name]
        except KeyError:
            known = ", ".join(sorted(self.tasks)) or "none"
            raise NotFound(f"task {name!r} is not registered here; known tasks: {known}") from None


async def _verdict(check: Check, contexts: TaskContexts) -> object:
    """What a check says. Raised is only what keeps it from being asked: there was no room for a thread."""
    if inspect.iscoroutinefunction(check):
        verdict = _ask(check, nullcontext)
    else:
        verdict = await on_own_thread(lambda: _ask(check, contexts.enter_once or contexts.enter))
    if not inspect.isawaitable(verdict):
        return verdict
    try:
        return await contexts.awaited(verdict)
    except (KeyboardInterrupt, asyncio.CancelledError):
        raise
    except BaseException as error:  # SystemExit too must not end the node
        return one_line(error)


def _ask(check: Check, enter: Callable[[], AbstractContextManager[object]]) -> object:
    """The verdict of a check; one that raises has said no, and why."""
    try:
        with enter():
            return check()
    except BaseException as error:
        return one_line(error)


def _check_no_method(name: str, function: Callable[..., Any]) -> None:
    """A function that is decorated inside of a class gets no `self` from anybody."""
    outer = getattr(function, "__qualname__", "").rpartition(".")[0]
    if not inspect.isfunction(function) or not outer or outer.endswith("<locals>"):
        return
    first = next(iter(inspect.signature(function).parameters), None)
    if first in ("self", "cls"):
        raise InvalidInput(
            f"task {name!r} is a method of {outer.rpartition('.')[2]}: there is no object to call it on when it runs",
            field="name",
            hint="make it a function, or a staticmethod, of plain arguments",
        )


def _longer_name(name: str, function: Callable[..., Any]) -> str:
    """With the name of its module, or of the app whose `tasks.py` that is."""
    module = str(getattr(function, "__module__", "")).removesuffix(".tasks")
    return f"{module.rpartition('.')[2].strip('_') or 'other'}.{name}"


def _place(function: Callable[..., Any]) -> str:
    return f"{getattr(function, '__module__', '?')}.{getattr(function, '__qualname__', function)}"
