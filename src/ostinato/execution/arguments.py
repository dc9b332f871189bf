"""The arguments and the result of a task, by the annotations of its function: from Python to JSON and back.

`registry.py` keeps a TaskSignature with each task; a call is checked where it is enqueued, and again where it runs: the
code may be newer by then. `conversion.py` converts single values.
"""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ostinato.errors import InvalidInput, NotLoadable
from ostinato.execution.conversion import Annotation, annotation_of, unannotated
from ostinato.execution.hints import UnresolvedHint, type_hints
from ostinato.models.nesting import too_deep

if TYPE_CHECKING:
    from ostinato.execution.binding import ContextParameter

__all__ = ["TaskSignature", "UnfitArguments", "UnfitResult", "unknown_signature"]

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_MOST_SHAPES = 1000


class UnfitArguments(Exception):
    """The stored arguments of a run are not those that its task takes now."""


class UnfitResult(Exception):
    """What a task returned is not what its annotation says, or would come back as something else."""


class TaskSignature:
    """The parameters of a task but for its RunContext. Annotations are resolved when a value is first converted, so
    that they may name what is defined later."""

    def __init__(self, task: str, function: Callable[..., Any], context: ContextParameter | None) -> None:
        self._task = task
        self._function = function
        found = [each for each in _parameters(function) if context is None or each.name != context.name]
        self._positional = [each.name for each in found if each.kind in _POSITIONAL]
        self._only_by_position = {each.name for each in found if each.kind is each.POSITIONAL_ONLY}
        self._named = {each.name: None for each in found if each.kind in _NAMED}
        self._rest = next((each.name for each in found if each.kind is each.VAR_POSITIONAL), None)
        self._rest_named = next((each.name for each in found if each.kind is each.VAR_KEYWORD), None)
        self._required = [
            each.name for each in found if each.default is each.empty and each.kind in (*_POSITIONAL, *_NAMED)
        ]
        self._may_be_none = {each.name for each in found if each.default is None}
        self._plain_shapes: set[tuple[Any, ...]] = set()
        """Of calls that are stored as they are: the types of arguments by position, then the names of the others and
        their types."""

    @property
    def required(self) -> Sequence[str]:
        """The parameters without a default."""
        return self._required

    def encode(
        self, args: Sequence[Any], kwargs: Mapping[str, Any], from_json: bool = False
    ) -> tuple[list[Any], dict[str, Any]]:
        """A call as it is stored; InvalidInput names the argument that is missing, not known, or does not fit. Where
        it comes from JSON, text may stand for bytes."""
        # Most calls have nothing to convert, and cost next to nothing.
        shape = (*map(type, args), *kwargs, *map(type, kwargs.values())) if kwargs else tuple(map(type, args))
        if shape in self._plain_shapes:
            return list(args), dict(kwargs)
        self._check_names(args, kwargs)
        by_position, by_name = list(args), dict(kwargs)
        for index, (name, annotation) in enumerate(self._of_positions(len(args))):
            if type(args[index]) not in annotation.sent_as_it_is:
                encode = functools.partial(annotation.encode, from_json=from_json)
                by_position[index] = self._converted(encode, annotation, args[index], name, "args")
        for name in kwargs:
            annotation = self._of_name(name)
            if type(kwargs[name]) not in annotation.sent_as_it_is:
                encode = functools.partial(annotation.encode, from_json=from_json)
                by_name[name] = self._converted(encode, annotation, kwargs[name], name, "kwargs")
        if len(self._plain_shapes) < _MOST_SHAPES and self._is_plain(args, kwargs):
            self._plain_shapes.add(shape)
        return by_position, by_name

    def _is_plain(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
        """Whether every call with arguments of these names and types is stored as it is."""
        named = [self._of_name(name) for name in kwargs]
        annotations = [*(annotation for _, annotation in self._of_positions(len(args))), *named]
        values = [*args, *kwargs.values()]
        return all(type(value) in each.sent_as_it_is for value, each in zip(values, annotations, strict=True))

    def decode(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Sequence[Any], Mapping[str, Any]]:
        """A stored call as the function takes it; UnfitArguments if it does not take it any more."""
        if not args and not kwargs and not self._required:
            return args, kwargs
        try:
            return self._decode(args, kwargs)
        except InvalidInput as error:
            raise UnfitArguments(str(error)) from error

    def _decode(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Sequence[Any], Mapping[str, Any]]:
        self._check_names(args, kwargs)
        by_position, by_name = list(args), dict(kwargs)
        for index, (name, annotation) in enumerate(self._of_positions(len(args))):
            if annotation.takes_more_than(args[index]):
                by_position[index] = self._converted(annotation.decode, annotation, args[index], name, "args")
        for name in kwargs:
            annotation = self._of_name(name)
            if annotation.takes_more_than(kwargs[name]):
                by_name[name] = self._converted(annotation.decode, annotation, kwargs[name], name, "kwargs")
        return by_position, by_name

    @property
    def may_return_none(self) -> bool:
        """Whether None is a result that needs no look."""
        return type(None) in self._annotations["return"].sent_as_it_is

    def check_result(self, value: Any, encoded: bytes) -> bytes:
        """A result as it is stored, of its JSON; UnfitResult if that is not what the annotation says."""
        annotation = self._annotations["return"]
        try:
            return annotation.check_result(value, encoded)
        except RecursionError:
            raise
        except Exception as error:  # the code of a type may raise anything
            why, hint = annotation.refusal("it", error, value)
            raise UnfitResult(f"its result {why}" + (f"; {hint}" if hint else "")) from error

    def decode_result(self, value: Any) -> Any:
        """A stored result as the function returned it, if that is annotated; NotLoadable if it does not fit."""
        annotation = self._annotations["return"]
        if not annotation.takes_more_than(value):
            return value
        try:
            return annotation.decode(value)
        except Exception as error:  # the code of a type may raise anything
            raise NotLoadable(
                f"the result of task {self._task!r} does not fit its annotation {annotation.text}: {error}"
            ) from error

    def _check_names(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        given = self._positional[: len(args)]
        if len(args) > len(self._positional) and self._rest is None:
            most = len(self._positional)
            raise self._wrong(f"takes at most {most} positional argument{'s' * (most != 1)}, not {len(args)}", "args")
        for name in kwargs:
            if name in self._named and name in given:
                raise self._wrong(f"is given the argument {name!r} twice", "kwargs")
            if name not in self._named and self._rest_named is None:
                raise self._not_by_name(name)
        for name in self._required:
            if name not in given and (name in self._only_by_position or name not in kwargs):
                raise self._wrong(f"needs the argument {name!r}", "args")

    def _not_by_name(self, name: str) -> InvalidInput:
        if name in self._only_by_position:
            return self._wrong(f"takes the argument {name!r} by its position, not by its name", "kwargs")
        known = ", ".join(self._named)
        return self._wrong(f"takes no argument {name!r}", "kwargs", f"it takes {known}" if known else "")

    def _wrong(self, what: str, field: str, hint: str = "") -> InvalidInput:
        return InvalidInput(f"task {self._task!r} {what}", field=field, hint=hint)

    def _converted(
        self, convert: Callable[[Any], Any], annotation: Annotation, value: Any, name: str, field: str
    ) -> Any:
        try:
            return convert(value)
        except RecursionError as error:
            raise too_deep(f"the arguments of task {self._task!r} are", field) from error
        except Exception as error:  # the code of a type may raise anything
            why, hint = annotation.refusal(name, error, value)
            raise InvalidInput(f"argument {name!r} of task {self._task!r} {why}", field=field, hint=hint) from error

    def _of_positions(self, count: int) -> Iterator[tuple[str, Annotation]]:
        for name in self._positional[:count]:
            yield name, self._annotations[name]
        for _ in range(count - len(self._positional)):
            assert self._rest is not None
            yield self._rest, self._annotations[self._rest]

    def _of_name(self, name: str) -> Annotation:
        return self._annotations[name if name in self._named else self._rest_named or "return"]

    @functools.cached_property
    def _annotations(self) -> dict[str, Annotation]:
        """By the name of the parameter, and of the result as `return`."""
        hints = _annotations_of(self._function, self._may_be_none)
        names = [*self._positional, *self._named, self._rest, self._rest_named, "return"]
        return {name: hints.get(name) or unannotated() for name in names if name is not None}


@functools.lru_cache(maxsize=1024)
def unknown_signature(task: str) -> TaskSignature:
    """Of a task that is not known here: any arguments, of plain JSON."""
    return _UnknownSignature(task, _anything, None)


def _anything(*args: Any, **kwargs: Any) -> None:
    """What a function may take of which nothing is known."""


class _UnknownSignature(TaskSignature):
    @functools.cached_property
    def _annotations(self) -> dict[str, Annotation]:
        return dict.fromkeys(("args", "kwargs", "return"), unannotated("its task is not known here", "pass plain JSON"))


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(function).parameters.values())
    except ValueError:  # of a function in C that does not say: it takes whatever it takes
        kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        return [inspect.Parameter(name, kind) for name, kind in zip(("args", "kwargs"), kinds, strict=True)]


def _annotations_of(function: Callable[..., Any], may_be_none: Collection[str]) -> dict[str, Annotation]:
    """By the name of the parameter. One that only a type checker can resolve is none, and the others stay."""
    hints = dict(type_hints(function))
    for name, hint in hints.items():
        if name in may_be_none and not isinstance(hint, UnresolvedHint):
            with suppress(TypeError):  # it is no type at all
                hints[name] = typing.Union[hint, None]  # noqa: UP007  # not every annotation has an `|`
    return {name: annotation_of(hint) for name, hint in hints.items()}
