"""Where the page can be opened: at the setting `public_url`, or where this process has mounted it."""

from __future__ import annotations

from urllib.parse import quote

from ostinato.integrations.django.scheduler import get_jobs

__all__ = ["mounted_at", "page_url"]

_places: list[str] = []


def mounted_at(place: str) -> None:
    """This process serves the page here."""
    _places.append(place)


def page_url(*parts: str) -> str | None:
    """An address on the page; None if nobody has said where that is."""
    base = get_jobs().settings.public_url or (_places[-1] if _places else None)
    return None if base is None else "/".join((base, *(quote(part, safe="") for part in parts)))
