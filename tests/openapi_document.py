"""The OpenAPI document as the server writes it. To make it takes a while, so it is made once for all who look at it."""

from __future__ import annotations

from typing import Any, cast

from ostinato.api.app import create_app
from ostinato.api.container import ApiContainer

__all__ = ["DOCUMENT"]

DOCUMENT: dict[str, Any] = create_app(cast(ApiContainer, None)).openapi()
