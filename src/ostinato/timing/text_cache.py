"""`TextCache`: what is read from a text, kept by the text. A text with the dates of a calendar may have 11 kB."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Concatenate, Generic, ParamSpec, TypeVar

__all__ = ["TextCache"]

P = ParamSpec("P")
T = TypeVar("T")

_LONG = 1_000
_MOST_LONG = 256


class TextCache(Generic[P, T]):
    """A function of a text whose last answers are kept: of long texts fewer, since they are kept with them."""

    def __init__(self, function: Callable[Concatenate[str, P], T], most: int) -> None:
        self._short = lru_cache(most)(function)
        self._long = lru_cache(_MOST_LONG)(function)

    def __call__(self, text: str, *args: P.args, **kwargs: P.kwargs) -> T:
        found = self._short if len(text) < _LONG else self._long
        return found(text, *args, **kwargs)  # type: ignore[arg-type]

    def cache_clear(self) -> None:
        self._short.cache_clear()
        self._long.cache_clear()
