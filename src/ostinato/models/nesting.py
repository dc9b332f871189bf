"""How deep JSON may be nested: what is given is refused beyond it, before anything is written.

Encoders and decoders recurse, and how far they get depends on who calls them: what could be stored could not be shown.
"""

from __future__ import annotations

import re

from ostinato.errors import InvalidInput

__all__ = ["MOST_DEPTH", "MOST_SHOWN_DEPTH", "check_depth", "is_deeper", "too_deep"]

MOST_DEPTH = 100
"""Of arguments, payloads, bodies and results."""
MOST_SHOWN_DEPTH = 300
"""Of what older versions stored: beyond this, nobody can be sure to show it."""

# Texts, and whatever else is no bracket.
_NO_BRACKETS = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[^\[\]{}"]+', re.DOTALL)
_ONE_KIND = bytes.maketrans(b"{}", b"[]")


def is_deeper(encoded: bytes, most: int = MOST_DEPTH) -> bool:
    """Whether a JSON text is nested deeper than this. It need not be right JSON."""
    # Most are shorter than that, or have fewer brackets.
    if len(encoded) <= most or encoded.count(b"[") + encoded.count(b"{") <= most:
        return False
    brackets = _NO_BRACKETS.sub(b"", encoded).translate(_ONE_KIND)
    for _ in range(most):
        before = len(brackets)
        brackets = brackets.replace(b"[]", b"")  # the innermost of each
        if len(brackets) == before:
            break
    return b"[]" in brackets or brackets.count(b"[") > most


def too_deep(what: str, field: str) -> InvalidInput:
    """The error for what is nested too deep."""
    return InvalidInput(f"{what} nested more than {MOST_DEPTH} deep", field=field, hint="pass a flatter value")


def check_depth(encoded: bytes, what: str, field: str) -> None:
    """Refuse a JSON text that is nested too deep."""
    if is_deeper(encoded):
        raise too_deep(what, field)
