"""A folder that this user may not look into, also where the tests run as root, to whom no folder is closed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

__all__ = ["close"]


def close(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What is in this folder cannot be asked for any more."""
    stat = os.stat

    def refuse(path: Any, *args: Any, **kwargs: Any) -> os.stat_result:
        if not isinstance(path, int) and folder in Path(os.fsdecode(path)).parents:
            raise PermissionError(13, "Permission denied", str(path))
        return stat(path, *args, **kwargs)

    monkeypatch.setattr(os, "stat", refuse)
    return folder
