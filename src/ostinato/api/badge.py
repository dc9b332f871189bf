"""A badge: the name of a schedule and how it is, as a small SVG. Nothing in it is executed, and all text is escaped."""

from __future__ import annotations

from xml.sax.saxutils import escape, quoteattr

from ostinato.service.check_ins import Badge, BadgeState

__all__ = ["badge_svg"]

_COLORS = {
    BadgeState.OK: "#2e7d32",
    BadgeState.ERRORS: "#8a6100",
    BadgeState.FAILING: "#c62828",
    BadgeState.LATE: "#b25000",
    BadgeState.BROKEN: "#8e0000",
    BadgeState.OFF: "#616161",
    BadgeState.NEW: "#616161",
}
_LONGEST_NAME = 50
_CHARACTER = 7
_PADDING = 12


def badge_svg(badge: Badge) -> str:
    """The picture."""
    name = badge.name if len(badge.name) <= _LONGEST_NAME else f"{badge.name[: _LONGEST_NAME - 1]}…"
    left, right = (len(text) * _CHARACTER + _PADDING for text in (name, badge.state))
    title = f"{name}: {badge.state}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img"'
        f" aria-label={quoteattr(title)}><title>{escape(title)}</title>"
        f'<rect width="{left}" height="20" fill="#444"/>'
        f'<rect x="{left}" width="{right}" height="20" fill="{_COLORS[badge.state]}"/>'
        '<g fill="#fff" text-anchor="middle" font-family="Verdana,Geneva,DejaVu Sans,sans-serif" font-size="11">'
        f"{_text(name, left / 2, left)}{_text(badge.state, left + right / 2, right)}</g></svg>\n"
    )


def _text(text: str, middle: float, width: int) -> str:
    """A text that is as wide as its place, whatever the font is."""
    return f'<text x="{middle:g}" y="14" textLength="{width - _PADDING}">{escape(text)}</text>'
