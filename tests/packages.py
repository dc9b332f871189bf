"""Packages that add a kind of work, as pip would leave them: a module and a dist-info in a folder of the path.

`installed` puts such a folder on the path of this process, `PYTHONPATH` on that of another one.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from ostinato.api import redaction
from ostinato.execution.executors import of_kinds
from ostinato.models import installed_kinds, work
from ostinato.service import answers, kind_answers

__all__ = ["ECHO", "GUIDE", "forgotten", "guide_package", "installed", "leave"]

GUIDE = Path(__file__).parents[1] / "docs" / "guides" / "own-kinds-of-work.md"

ECHO = '''
import asyncio
import time
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

from ostinato import Abort, RunContext, Work, WorkField, WorkKind


@dataclass(frozen=True, slots=True)
class Echo(Work):
    """Say something again.

    It is for tests.
    """

    kind: ClassVar[str] = "echo"
    text: Annotated[str, WorkField("What to say.")]
    how: Annotated[Literal["say", "raise", "abort", "wait", "hang"], WorkField("What else it does.")] = "say"
    times: Annotated[int, WorkField("How many times.")] = 1
    loud: Annotated[bool, WorkField("In capitals.")] = False
    to: Annotated[list[str], WorkField("Who hears it.")] = field(default_factory=list)
    token: Annotated[str | None, WorkField("Who says so.", secret=True)] = None
    headers: Annotated[dict[str, str], WorkField("More of that.", secret=True)] = field(default_factory=dict)


async def execute(work: Echo, run: RunContext) -> object:
    said = work.text.upper() if work.loud else work.text
    for _ in range(work.times):
        run.log(f"{said} {work.token or ''} {' '.join(work.headers.values())}".strip())
    run.count("said", work.times)
    if work.how == "raise":
        raise ValueError(said)
    if work.how == "abort":
        raise Abort(said)
    if work.how == "wait":
        await asyncio.sleep(3600)
    return {"said": said, "to": work.to, "attempt": run.attempt}


kind = WorkKind(Echo, execute, "Echo", "7m")
'''


def leave(folder: Path, module: str, source: str, *entries: str) -> Path:
    """A package in this folder: its module, and what its entry points say."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{module}.py").write_text(source, encoding="utf-8")
    metadata = folder / f"{module}-1.0.dist-info"
    metadata.mkdir(exist_ok=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n", encoding="utf-8")
    named = "\n".join(entries or (f"{module.removeprefix('ostinato_')} = {module}:kind",))
    (metadata / "entry_points.txt").write_text(f"[ostinato.executors]\n{named}\n", encoding="utf-8")
    return folder


def guide_package(folder: Path) -> Path:
    """The package that the guide shows."""
    text = GUIDE.read_text(encoding="utf-8")
    (source,) = re.findall(r"^```python\n(# ostinato_sql\.py\n.*?)^```$", text, re.MULTILINE | re.DOTALL)
    (entry,) = re.findall(r'^\[project\.entry-points\."ostinato\.executors"\]\n(.*) = "(.*)"$', text, re.MULTILINE)
    return leave(folder, "ostinato_sql", source, " = ".join(entry))


def forgotten() -> None:
    """What this process knows of packages is looked for anew."""
    installed_kinds._kept.clear()
    answers.added_work.cache_clear()
    kind_answers.kind_answers.cache_clear()
    of_kinds.load_functions.cache_clear()
    redaction._kind_of.cache_clear()
    for name in set(work._DECODERS) - {"function", "shell", "agent", "http", "check_in"}:
        del work._DECODERS[name]


@contextmanager
def installed(folder: Path, module: str | None = None) -> Iterator[ModuleType | None]:
    """The packages of this folder, in here; answers the module of one."""
    forgotten()
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        yield None if module is None else importlib.import_module(module)
    finally:
        sys.path.remove(str(folder))
        for name, one in list(sys.modules.items()):
            if str(getattr(one, "__file__", None)).startswith(str(folder)):
                del sys.modules[name]
        forgotten()
