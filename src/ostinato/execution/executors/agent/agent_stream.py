"""What an agent said of itself, pure: its answer, whose conversation it was, what it cost, what went wrong.

The readers that readers.py chooses fill it, agent_outcome.py judges it. Every CLI names things a little differently
and adds fields with every version, so each is taken where it is of the right kind, and otherwise is not there.
"""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ostinato.execution.secrets import NO_SECRETS, Mask

__all__ = ["LAST_LINES", "TEXT_CAP", "AgentStream", "as_message", "as_number", "as_text", "bounded"]

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
    is_live: bool = False
    """Its events come as it works: as long as it has not spoken, nothing was done."""
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
    retrying: str = ""
    """The name of the error after which it is trying again by itself, until it goes on."""
    status: int | None = None
    """Of the HTTP answer that was an error."""
    limit_ends: float | None = None
    """When the limit that it ran into ends, in Unix seconds."""
    retry_after: float | None = None
    """After how many seconds the other side wants to be asked again."""
    context_tokens: int | None = None
    """How many tokens of its context the model has used."""
    context_window: int | None = None
    """How many there are."""
    totals: dict[str, float] = field(default_factory=dict)
    counts_conversation: bool = False
    """Its tokens are those of the whole conversation, and not of this call."""
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

    def take_conversation(self, id: Any) -> None:
        """The conversation, as the result names it."""
        self.session_id = _id(id) or self.session_id

    def take_status(self, status: Any) -> None:
        """The status of an HTTP answer that was an error."""
        self.status = status if isinstance(status, int) else None

    def take_spoken(self) -> None:
        """The model has said or done something."""
        self.spoke, self.retrying = True, ""

    def take_context(self, tokens: Any, window: Any = None) -> None:
        """How full the context is, as far as it is said."""
        self.context_tokens = _whole(tokens) or self.context_tokens
        self.context_window = _whole(window) or self.context_window

    def take_result(self, said: Mapping[str, Any], *, spoken: str = "") -> None:
        """The object that ends it. `spoken` is the answer if the object does not repeat it."""
        self.answered = True
        error = said.get("error")
        errors = said.get("errors")
        complaint = as_message(error) or "; ".join(
            filter(None, map(as_message, errors if isinstance(errors, list) else []))
        )
        is_error = said.get("is_error")
        if not isinstance(is_error, bool):
            is_error = bool(error) or said.get("status") == "error" or as_text(said.get("subtype")).startswith("error")
        self.is_error = is_error
        answer = next(
            (text for name in ("result", "response", "text", "message") if (text := as_text(said.get(name)))), ""
        )
        self.text = bounded(self.mask.hide(answer or (complaint if is_error else "") or spoken).strip())
        self.subtype = self.mask.shortened(
            as_text(said.get("subtype")) or as_text(said.get("terminal_reason")), _CODE_CAP
        )
        ids = (_id(said.get(name)) for name in ("session_id", "conversation_id", "thread_id"))
        self.take_conversation(next(filter(None, ids), None))
        if "api_error_status" in said:
            self.take_status(said["api_error_status"])
        if is_error and isinstance(error, Mapping):
            self.take_code(error.get("type"))
            self.take_code(error.get("code"))
        elif is_error:
            self.take_code(error)
        self._take_usage(said)

    def take_totals(self, **found: Any) -> None:
        """Named amounts; what is none is left out."""
        amounts = {name: as_number(value) for name, value in found.items()}
        self.totals.update({name: amount for name, amount in amounts.items() if amount is not None})

    def _take_usage(self, said: Mapping[str, Any]) -> None:
        usage = next((each for name in ("usage", "stats") if isinstance(each := said.get(name), Mapping)), {})
        cached = (
            as_number(usage.get("cache_creation_input_tokens")) or 0,
            as_number(usage.get("cache_read_input_tokens")) or 0,
        )
        tokens_in = as_number(usage.get("input_tokens"))
        self.take_totals(
            cost_usd=said.get("total_cost_usd"),
            turns=said.get("num_turns"),
            tokens_in=None if tokens_in is None else tokens_in + sum(cached),
            tokens_out=usage.get("output_tokens"),
        )


def _id(value: Any) -> str | None:
    return value if isinstance(value, str) and _ID.fullmatch(value) else None


def as_text(value: Any) -> str:
    """The value if it is text, and otherwise nothing."""
    return value if isinstance(value, str) else ""


def as_message(value: Any) -> str:
    """What an error says, as text or as an object with a message."""
    if isinstance(value, Mapping):
        return as_text(value.get("message")) or as_text(value.get("type"))
    return as_text(value)


def as_number(value: Any) -> float | None:
    """The value if it is an amount: finite, not negative, and whole without loss."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return value if math.isfinite(value) and 0 <= value <= 2**53 else None


def _whole(value: Any) -> int | None:
    amount = as_number(value)
    return None if amount is None else int(amount)
