"""Which database Django reads the ledger from, and that it neither migrates, dumps nor loads it."""

from __future__ import annotations

from typing import Any

from django.db import router

__all__ = ["LedgerRouter", "install_router"]

_LABEL = "ostinato"


class LedgerRouter:
    """A database router, behind those of the project."""

    def db_for_read(self, model: Any, **_: Any) -> str | None:
        if model._meta.app_label != _LABEL:
            return None
        from ostinato.integrations.django.models import ledger_alias

        return ledger_alias()

    def db_for_write(self, model: Any, **_: Any) -> str | None:
        if model._meta.app_label != _LABEL:
            return None
        from ostinato.integrations.django.models import READ_ONLY

        raise TypeError(READ_ONLY)

    def allow_migrate(self, db: str, app_label: str, **_: Any) -> bool | None:
        return False if app_label == _LABEL else None


def install_router() -> None:
    """Nobody has to name it in DATABASE_ROUTERS."""
    if not any(isinstance(one, LedgerRouter) for one in router.routers):
        router.routers.append(LedgerRouter())
