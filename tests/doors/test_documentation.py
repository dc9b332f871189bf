"""The documentation holds: its Python runs, its links lead somewhere, and its reference names what the code has.

A page is one session. Its ```python blocks are run from top to bottom in one namespace and in an empty folder; a block
that begins with `# name.py` is saved there under that name and imported (`# test_….py`: run by pytest, at the end).
A block after a line `<!-- not run … -->` is left alone. `claude` is a stand-in there. Of ```console blocks, every call
of `ostinato` is read by the command line, but not carried out; ```toml blocks are read as settings.
"""

from __future__ import annotations

import ast
import importlib
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import apsw
import pytest
from cyclopts import App, CycloptsError

import ostinato
from ostinato import Ostinato, Shell, errors
from ostinato.config import Settings, load_settings
from ostinato.models.policy import Policy, make_policy
from ostinato.models.policy_fields import POLICIES, PolicyField
from tests.engine.stand_in import StandIn
from tests.leftovers import restored

ROOT = Path(__file__).parents[2]
OTHERS = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "deploy/README.md")
PAGES = [*(ROOT / name for name in OTHERS), *sorted((ROOT / "docs").rglob("*.md"))]
REFERENCE = ROOT / "docs" / "reference"
SETTINGS = {field.name for field in fields(Settings)} - {"tuning", "disabled_by"}

_FENCE = re.compile(
    r"^(?P<not_run><!-- not run[^\n]*-->\n)?```(?P<language>\w*)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL
)
_FILE = re.compile(r"# ([a-z_]+)\.py\b")
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")


@dataclass(frozen=True)
class Block:
    """A piece of Python on a page."""

    code: str
    line: int

    @property
    def module(self) -> str | None:
        """The module that it is to be saved as."""
        found = _FILE.match(self.code)
        return found[1] if found else None


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks_of(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [
        Block(found["code"], text[: found.start("code")].count("\n"))
        for found in _FENCE.finditer(text)
        if found["language"] == "python" and not found["not_run"]
    ]


def calls_of(page: Path) -> list[tuple[int, list[str]]]:
    """The calls of `ostinato` that a page shows, each with its line."""
    text = page.read_text(encoding="utf-8")
    calls = []
    for found in _FENCE.finditer(text):
        if found["language"] != "console":
            continue
        first = text[: found.start("code")].count("\n") + 1
        lines = found["code"].splitlines()
        for index, line in enumerate(lines):
            if line.startswith("$ "):
                while line.endswith("\\"):
                    index += 1
                    line = line[:-1] + lines[index]
                calls += [(first + index, words) for words in _calls_in(line[2:])]
    return calls


def _calls_in(line: str) -> list[list[str]]:
    """The words behind each `ostinato` of a line for a shell."""
    reader = shlex.shlex(line, posix=True, punctuation_chars="|&;<>()")
    reader.wordchars += ":,@+%$"
    reader.commenters = ""
    parts: list[list[str]] = [[]]
    for word in reader:
        if word == "#":
            break
        if set(word) <= set("|&;<>()"):
            parts.append([])
        else:
            parts[-1].append(word)
    return [part[1:] for part in parts if part and part[0] == "ostinato"]


def prose_of(page: Path) -> str:
    """The page without its code blocks."""
    return _FENCE.sub("", page.read_text(encoding="utf-8"))


def slugs_of(page: Path) -> set[str]:
    """The anchors of its headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", prose_of(page), re.MULTILINE)
    plain = [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings]
    assert len(plain) == len(set(plain)), f"{name_of(page)} has two headings of the same name"
    return set(plain)


def rows_of(page: Path) -> dict[str, str]:
    """The table that has a column of defaults: each name and its default."""
    table = re.search(
        r"^\| \w+ \| default \|.*\n\| ---.*\n((?:\|.*\n)+)", page.read_text(encoding="utf-8"), re.MULTILINE
    )
    assert table is not None, f"{name_of(page)} has no table of defaults"
    return dict(re.findall(r"^\| \[?`(\w+)`(?:\]\([^)]*\))? \| (.+?) \| ", table[1], re.MULTILINE))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder to run a page in, from which its files can be imported. No real agent can be called from it."""
    place = tmp_path / "page"
    place.mkdir()
    monkeypatch.chdir(place)
    monkeypatch.syspath_prepend(str(place))
    monkeypatch.setenv("PATH", f"{StandIn(tmp_path / 'agents').home}{os.pathsep}{os.environ['PATH']}")
    before = set(sys.modules)
    with restored():
        yield place
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", None)).startswith(str(place)):
            del sys.modules[name]


def stop_all(namespace: dict[str, Any]) -> None:
    for value in list(namespace.values()):
        if isinstance(value, Ostinato):
            value.stop(grace=0)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("page", [page for page in PAGES if blocks_of(page)], ids=name_of)
def test_the_python_of_a_page_runs(page: Path, folder: Path) -> None:
    namespace: dict[str, Any] = {"__name__": "page"}
    tests: list[str] = []
    modules: list[dict[str, Any]] = []
    try:
        for block in blocks_of(page):
            if block.module is None:
                code = compile("\n" * block.line + block.code, str(page), "exec", dont_inherit=True)
                exec(code, namespace)
                continue
            (folder / f"{block.module}.py").write_text(block.code, encoding="utf-8")
            if block.module.startswith("test_"):
                tests.append(f"{block.module}.py")
            else:
                modules.append(vars(importlib.import_module(block.module)))
    finally:
        for names in (namespace, *modules):
            stop_all(names)
    if tests:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *tests]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=50, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("page", [page for page in PAGES if calls_of(page)], ids=name_of)
def test_every_command_line_of_a_page_can_be_read(page: Path) -> None:
    from ostinato.cli.main import app

    for line, words in calls_of(page):
        if words != ["--version"]:
            try:
                app.parse_args(words, exit_on_error=False, print_error=False)
            except CycloptsError as error:
                pytest.fail(f"{name_of(page)}, line {line}: {error}")


def test_every_settings_file_can_be_read(tmp_path: Path) -> None:
    found = [
        (page, match["code"])
        for page in PAGES
        for match in _FENCE.finditer(page.read_text(encoding="utf-8"))
        if match["language"] == "toml"
    ]
    assert len(found) >= 2
    for page, code in found:
        (tmp_path / "ostinato.toml").write_text(code, encoding="utf-8")
        assert load_settings(tmp_path, {}) != Settings(), name_of(page)
        assert tomllib.loads(code).keys() <= SETTINGS


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    for link in _LINK.findall(prose_of(page)):
        if link.startswith(("http://", "https://")):
            continue
        place, _, anchor = link.partition("#")
        target = (page.parent / place).resolve() if place else page
        assert target.exists(), f"{name_of(page)} links to {link}, which is not there"
        if anchor:
            assert anchor in slugs_of(target), f"{name_of(page)} links to {link}, which has no such heading"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_page_says_only_what_is_there(page: Path) -> None:
    for word in ("TODO", "FIXME", "coming soon", "for now"):
        assert word not in page.read_text(encoding="utf-8"), f"{name_of(page)} says {word!r}"


def test_every_json_sample_is_json() -> None:
    text = (REFERENCE / "cli.md").read_text(encoding="utf-8")
    samples = [found["code"] for found in _FENCE.finditer(text) if found["language"] == "json"]
    assert len(samples) >= 2
    for sample in samples:
        json.loads(sample)


def test_the_policy_page_names_every_field_with_its_default() -> None:
    rows = rows_of(REFERENCE / "policy.md")
    assert set(rows) == {field.name for field in fields(Policy)}
    shown = {name: _value(default) for name, default in rows.items()}
    assert make_policy(shown) == Policy()


@pytest.mark.parametrize("field", POLICIES.values(), ids=lambda field: field.name)
def test_the_policy_page_says_what_the_table_says(field: PolicyField) -> None:
    text = (REFERENCE / "policy.md").read_text(encoding="utf-8")
    (row,) = re.findall(rf"^\| \[`{field.name}`\]\(#.*$", text, re.MULTILINE)
    assert row.endswith(f" | {field.about.help} |")
    for value in field.about.choices:
        assert f"| `{value}` |" in text


def _value(cell: str) -> Any:
    """A default as it stands in a table: a Python literal, or text."""
    text = cell.strip("`")
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return text


def test_the_settings_page_names_every_setting_with_its_default(tmp_path: Path) -> None:
    rows = rows_of(REFERENCE / "settings.md")
    assert set(rows) == SETTINGS
    # The zone is the machine's, which is no literal.
    shown = {name: _value(default) for name, default in rows.items() if name != "tz"}
    assert load_settings(tmp_path, {}, **shown, tz="UTC") == Settings()


@pytest.mark.parametrize("names", [ostinato.__all__, errors.__all__], ids=["ostinato", "ostinato.errors"])
def test_the_python_page_names_every_public_name(names: list[str]) -> None:
    text = (REFERENCE / "python.md").read_text(encoding="utf-8")
    assert [name for name in names if not re.search(rf"\b{name}\b", text)] == []


def test_the_command_line_page_names_every_command_and_flag() -> None:
    from ostinato.cli.main import app

    text = (REFERENCE / "cli.md").read_text(encoding="utf-8")
    missing = [" ".join(path) for path, _ in _commands(app) if not re.search(rf"\b{' '.join(path)}\b", text)]
    assert missing == []
    # The flag of a policy has its name, under which it is on the page on policies.
    policies = {f"--{name.replace('_', '-')}" for name in POLICIES}
    flags = {flag for _, command in _commands(app) for flag in _flags(command)} - policies
    assert sorted(flag for flag in flags if flag not in text) == []


def _commands(app: App, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], App]]:
    for name in app:
        if not name.startswith("-"):
            yield (*path, name), app[name]
            yield from _commands(app[name], (*path, name))


def _flags(command: App) -> set[str]:
    """One name for each flag: a short one where there is a short one."""
    if command.default_command is None:
        return set()
    found = set()
    for argument in command.assemble_argument_collection(parse_docstring=False):
        names = [name for name in argument.names if name.startswith("-") and not name.startswith("--no-")]
        if names:
            found.add(min(names, key=len))
    return found


def test_the_shell_page_names_every_variable_that_a_command_gets(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in [name for name in os.environ if name.startswith("OSTINATO_")]:
        monkeypatch.delenv(name)
    app = Ostinato(settings=Settings(db=f"sqlite:///{tmp_path / 'jobs.db'}"))
    run = app.execute(Shell("env"), gate="""echo '{"wake": true}'""")
    given = set(re.findall(r"^(OSTINATO_\w+)=", app.runs.output(run.id), re.MULTILINE))
    app.stop()
    page = (ROOT / "docs/guides/shell.md").read_text(encoding="utf-8")
    assert given == set(re.findall(r"^\| `(OSTINATO_\w+)` \|", page, re.MULTILINE))


def test_the_ledger_page_names_every_table_and_column() -> None:
    text = (REFERENCE / "ledger.md").read_text(encoding="utf-8")
    sections = {part.split("\n", 1)[0]: part for part in text.split("\n## ")[1:]}
    ask: Callable[[str], list[tuple[Any, ...]]] = _schema()
    for (table,) in ask("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"):
        columns = [name for (name,) in ask(f"SELECT name FROM pragma_table_info('{table}')")]
        assert [column for column in columns if f"`{column}`" not in sections[table]] == [], table


def _schema() -> Callable[[str], list[tuple[Any, ...]]]:
    """Asks a database that every migration has been run on."""
    connection = apsw.Connection(":memory:")
    connection.execute("CREATE TABLE migrations (version, name, applied_at)")
    for migration in sorted((ROOT / "src/ostinato/stores/sqlite/migrations").glob("*.sql")):
        connection.execute(migration.read_text(encoding="utf-8"))
    return lambda query: list(connection.execute(query))


def test_every_promise_names_tests_that_exist() -> None:
    page = (ROOT / "docs" / "guides" / "reliability.md").read_text()
    (table,) = re.findall(r"^\| what goes wrong \|.*\n\| --- .*\n((?:\|.*\n)+)", page, re.MULTILINE)
    for row in table.splitlines():
        named = re.findall(r"`(tests/[^`]+)`", row.rsplit(" | ", 1)[1])
        assert named, f"no test is named: {row}"
        assert [path for path in named if not (ROOT / path).is_file()] == []
