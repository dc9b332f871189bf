"""What an agent said of itself, pure: its answer, whose conversation it was, what it cost, what went wrong.

The readers of stream.py fill it, agent_outcome.py judges it. Every CLI names things a little differently and adds
fields with every version, so each is taken where it is of the right kind, and otherwise is not there.
"""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ostinato.execution.secrets import NO_SECRETS, Mask

__all__ = ["LAST_LINES", "TEXT_CAP", "AgentStream", "bounded"]

TEXT_CAP = 100_000
"""How many characters of an answer are kept with the run."""
LAST_LINES = 20
"""How many lines that were printed aside are remembered."""
_LINE_CAP = 1_000
_CODE_CAP = 100
_MOST_CODES = 20
_ID = re.compile(r"[A-Za-z0-9][\w.:-]{0,199}")
"""An id becomes an argument of a later call, so it must not look like anything else."""


def bounded(text: str, most: int = TEXT_CAP) -> str:
    """The text, or its two ends and how much is missing between them."""
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n… {len(text) - 2 * half:,} characters cut …\n{text[-half:]}"


@dataclass(slots=True)
class AgentStream:
    """All that came from one call of a command line."""

    mask: Mask = NO_SECRETS
    """Hides secrets. Before anything is cut, for half a secret is not known any more."""
    is_plain: bool = False
    """It only prints text: its exit status says how it went."""
    answered: bool = False
    """Its result has come."""
    is_error: bool = False
    text: str = ""
    """The answer; of a failure, what it says of it."""
    subtype: str = ""
    begun: str | None = None
    """The conversation, as the beginning names it."""
    session_id: str | None = None
    """The conversation, as the result names it."""
    spoke: bool = False
    """Whether the model has said or done anything."""
    codes: set[str] = field(default_factory=set)
    """Errors that have a name: authentication_failed."""
    status: int | None = None
    """Of the HTTP answer that was an error."""
    totals: dict[str, float] = field(default_factory=dict)
    last_lines: deque[str] = field(default_factory=lambda: deque(maxlen=LAST_LINES))
    """The ends of what was printed aside: on stderr, or as text among JSON."""

    def take_line(self, text: str) -> None:
        """A line that was printed for people."""
        if text.strip():
            self.last_lines.append(self.mask.hide(text.strip())[:_LINE_CAP])

    def take_code(self, code: Any) -> None:
        """The name of an error; what is longer than a name is none."""
        if isinstance(code, str) and 0 < len(code) <= _CODE_CAP and len(self.codes) < _MOST_CODES:
            self.codes.add(code)

    def take_begun(self, id: Any) -> None:
        self.begun = _id(id) or self.begun

    def take_result(self, said: Mapping[str, Any], *, spoken: str = "") -> None:
        """The object that ends it. `spoken` is the answer if the object does not repeat it."""
        self.answered = True
        error = said.get("error")
        errors = said.get("errors")
        complaint = _message(error) or "; ".join(
            filter(None, map(_message, errors if isinstance(errors, list) else []))
        )
        is_error = said.get("is_error")
        if not isinstance(is_error, bool):
            is_error = bool(error) or said.get("status") == "error" or _text(said.get("subtype")).startswith("error")
        self.is_error = is_error
        answer = next(
            (text for name in ("result", "response", "text", "message") if (text := _text(said.get(name)))), ""
        )
        self.text = bounded(self.mask.hide(answer or (complaint if is_error else "") or spoken).strip())
        self.subtype = self.mask.shortened(_text(said.get("subtype")) or _text(said.get("terminal_reason")), _CODE_CAP)
        ids = (_id(said.get(name)) for name in ("session_id", "conversation_id", "thread_id"))
        self.session_id = next(filter(None, ids), None) or self.session_id
        status = said.get("api_error_status")
        self.status = status if isinstance(status, int) else None
        if is_error and isinstance(error, Mapping):
            self.take_code(error.get("type"))
            self.take_code(error.get("code"))
        elif is_error:
            self.take_code(error)
        self._take_totals(said)

    def _take_totals(self, said: Mapping[str, Any]) -> None:
        usage = next((each for name in ("usage", "stats") if isinstance(each := said.get(name), Mapping)), {})
        cached = (
            _number(usage.get("cache_creation_input_tokens")) or 0,
            _number(usage.get("cache_read_input_tokens")) or 0,
        )
        tokens_in = _number(usage.get("input_tokens"))
        found = {
            "cost_usd": _number(said.get("total_cost_usd")),
            "turns": _number(said.get("num_turns")),
            "tokens_in": None if tokens_in is None else tokens_in + sum(cached),
            "tokens_out": _number(usage.get("output_tokens")),
        }
        self.totals.update({name: value for name, value in found.items() if value is not None})


def _id(value: Any) -> str | None:
    return value if isinstance(value, str) and _ID.fullmatch(value) else None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _message(value: Any) -> str:
    """What an error says, as text or as an object with a message."""
    if isinstance(value, Mapping):
        return _text(value.get("message")) or _text(value.get("type"))
    return _text(value)


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return value if math.isfinite(value) and 0 <= value <= 2**53 else None
