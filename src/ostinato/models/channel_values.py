"""What people give for a channel, checked: its URL, which is a secret, and its quiet hours.

Whether a URL can be understood is asked of whoever sends with it; channel_url.py says what may be shown of it.
"""

from __future__ import annotations

import re
from typing import Any

from ostinato.errors import InvalidInput
from ostinato.models.channel_url import HIDDEN, is_reference

__all__ = ["check_quiet", "check_url"]

_LONGEST = 4_096
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s\x00-\x1f]+")
_CHAT = re.compile(r"telegram://-?\d{1,20}/?")
_QUIET = re.compile(r"([01]?\d|2[0-3]):([0-5]\d) ?- ?([01]?\d|2[0-3]):([0-5]\d)")


def check_url(url: Any) -> str:
    """The URL of a channel; InvalidInput, which does not repeat it, if it cannot be one."""
    hint = "give one such as json://example.org/path or tgram://TOKEN/CHAT, or a reference: env:NAME, file:PATH"
    given = url.strip() if isinstance(url, str) else ""
    if not given:
        raise InvalidInput("a channel needs a URL", field="url", hint=hint)
    if HIDDEN in given:
        raise InvalidInput(
            f"the URL has {HIDDEN}, which stands for what was not shown",
            field="url",
            hint="give the whole URL again, or leave it out to keep it as it is",
        )
    if given.startswith("telegram:") and not _CHAT.fullmatch(given):
        raise InvalidInput(
            "a chat is a number", field="url", hint="write telegram://42, or telegram://-1001234 for a group"
        )
    if len(given) > _LONGEST or not (is_reference(given) or _URL.fullmatch(given)):
        raise InvalidInput("the URL cannot be read", field="url", hint=hint)
    return given


def check_quiet(text: Any) -> str:
    """Hours of a day, as `22:00-07:00`; InvalidInput if they are none."""
    found = _QUIET.fullmatch(text.strip()) if isinstance(text, str) else None
    if found is None:
        raise InvalidInput(f"quiet cannot be {text!r}", field="quiet", hint="give hours, such as 22:00-07:00")
    begin, end = (f"{int(found[hour]):02}:{found[hour + 1]}" for hour in (1, 3))
    if begin == end:
        raise InvalidInput(
            f"quiet cannot be {text!r}: it would never end", field="quiet", hint="remove the channel instead"
        )
    return f"{begin}-{end}"
