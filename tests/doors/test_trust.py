"""A stranger's database, settings file or app in a shared folder is refused, with the way to allow it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ostinato import Ostinato
from ostinato.config import load_settings
from ostinato.errors import InvalidInput
from ostinato.trust import VARIABLE, require_trust, require_trusted_database
from tests.doors.command_line import CommandLine

STRANGER = 65_534

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a file that belongs to another")


@pytest.fixture(autouse=True)
def nobody_is_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.delenv("SUDO_UID", raising=False)


def made(path: Path, mode: int = 0o600, owner: int | None = None, group: int = -1) -> Path:
    path.write_text("")
    path.chmod(mode)
    if owner is not None:
        os.chown(path, owner, group)
    return path


@needs_root
@pytest.mark.parametrize("suffix", ["", "-wal", "-shm", "-journal"])
def test_a_strangers_database_is_refused_until_it_is_allowed(
    cli: CommandLine, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli.ok("db", "migrate")
    planted = cli.folder / f"ostinato.db{suffix}"
    planted.touch()
    os.chown(planted, STRANGER, -1)
    refused = cli("run", "ls")
    assert refused.code == 2
    wrong = f"{planted}" if suffix else "it"
    assert f"the database {cli.folder}/ostinato.db is not trusted: {wrong} belongs to " in refused.err
    assert f"export {VARIABLE}={cli.folder}/ostinato.db" in refused.err.replace("\n", "")
    monkeypatch.setenv(VARIABLE, str(cli.folder / "ostinato.db"))
    cli.ok("run", "ls")


@needs_root
def test_a_strangers_database_is_refused_in_python_too_though_it_is_named(tmp_path: Path) -> None:
    made(tmp_path / "jobs.db", owner=STRANGER)
    app = Ostinato(f"sqlite:///{tmp_path}/jobs.db")
    with pytest.raises(InvalidInput, match="is not trusted"):
        app.runs.list()
    assert (tmp_path / "jobs.db").stat().st_size == 0, "nothing was written into it"


@needs_root
def test_a_strangers_settings_and_app_are_refused_before_they_are_read(cli: CommandLine, tmp_path: Path) -> None:
    proof = tmp_path / "proof"
    (cli.folder / "evil.py").write_text(f"open({str(proof)!r}, 'w')\nfrom ostinato import Ostinato\napp = Ostinato()\n")
    settings = cli.folder / "ostinato.toml"
    settings.write_text('app = "evil:app"\n')
    os.chown(settings, STRANGER, -1)
    refused = cli("run", "ls")
    assert refused.code == 2
    assert "the settings file" in refused.err
    os.chown(settings, 0, -1)
    os.chown(cli.folder / "evil.py", STRANGER, -1)
    refused = cli("run", "ls")
    assert refused.code == 2
    assert "the app" in refused.err
    assert "evil.py is not trusted: it belongs to" in refused.err.replace("\n", " ")
    assert not proof.exists(), "it was executed"


def test_a_folder_to_import_from_must_be_ones_own_even_if_it_is_sticky(cli: CommandLine) -> None:
    (cli.folder / "mine.py").write_text("from ostinato import Ostinato\napp = Ostinato()\n")
    cli.ok("task", "ls", "--app", "mine:app")
    cli.folder.chmod(0o1777)
    refused = cli("task", "ls", "--app", "mine:app")
    assert refused.code == 2
    assert "everybody may write" in refused.err
    cli.folder.chmod(0o700)


@needs_root
def test_a_package_is_judged_with_its_folder(cli: CommandLine) -> None:
    package = cli.folder / "parcel"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "jobs.py").write_text("from ostinato import Ostinato\napp = Ostinato()\n")
    os.chown(package, STRANGER, -1)
    refused = cli("task", "ls", "--app", "parcel.jobs:app")
    assert refused.code == 2
    assert "is not trusted" in refused.err


def test_an_app_is_found_in_folders_that_are_no_packages(cli: CommandLine) -> None:
    (cli.folder / "shop" / "work").mkdir(parents=True)
    app = "from ostinato import Ostinato\napp = Ostinato()\napp.task('tidy')(print)\n"
    (cli.folder / "shop" / "work" / "jobs.py").write_text(app)
    cli.ok("db", "migrate")
    assert "tidy" in cli.ok("task", "ls", "--app", "shop.work.jobs:app").out
    (cli.folder / "shop" / "work").chmod(0o777)
    refused = cli("task", "ls", "--app", "shop.work.jobs:app")
    assert refused.code == 2
    assert "shop/work is not trusted" in refused.err.replace("\n", "")


@pytest.mark.parametrize(
    ("file", "folder", "trusted"),
    [
        (0o600, 0o700, True),
        (0o644, 0o755, True),
        (0o666, 0o755, False),
        (0o600, 0o777, False),
        (0o600, 0o1777, True),
        (0o606, 0o1777, False),
    ],
)
def test_what_everybody_may_write_is_not_trusted(tmp_path: Path, file: int, folder: int, trusted: bool) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    path = made(shared / "jobs.db", file)
    shared.chmod(folder)
    if trusted:
        require_trusted_database(str(path))
    else:
        with pytest.raises(InvalidInput, match="everybody may write"):
            require_trusted_database(str(path))


@needs_root
def test_a_group_counts_only_if_it_has_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = made(tmp_path / "alone", 0o660, 0, 54_321)
    require_trust(alone, "the file", "db")
    require_trust(made(tmp_path / "root", 0o660, 0, 0), "the file", "db")
    shared = made(tmp_path / "shared", 0o660, 0, 1)  # of "daemon", whose first group it is
    with pytest.raises(InvalidInput, match="daemon may write it, by its group"):
        require_trust(shared, "the file", "db")


@needs_root
def test_a_link_is_judged_by_where_it_is_and_where_it_leads(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    mine = made(tmp_path / "mine.db")
    link = theirs / "link.db"
    link.symlink_to(mine)
    require_trust(link, "the file", "db")
    os.chown(theirs, STRANGER, -1)
    with pytest.raises(InvalidInput, match="theirs belongs to"):
        require_trust(link, "the file", "db")
    made(theirs / "bait.db", owner=STRANGER)
    lure = tmp_path / "lure.db"
    lure.symlink_to(theirs / "bait.db")
    with pytest.raises(InvalidInput, match="belongs to"):
        require_trust(lure, "the file", "db")


@needs_root
@pytest.mark.parametrize("allowed", ["{folder}", "{file}", "/nowhere:{folder}", "*"])
def test_what_is_named_is_trusted_with_all_below_it(
    tmp_path: Path, allowed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = made(tmp_path / "ostinato.toml", owner=STRANGER)
    monkeypatch.setenv(VARIABLE, f"{tmp_path}-other")
    with pytest.raises(InvalidInput, match="is not trusted"):
        load_settings(tmp_path)
    monkeypatch.setenv(VARIABLE, allowed.format(folder=tmp_path, file=path))
    load_settings(tmp_path)


@needs_root
def test_root_by_sudo_trusts_who_called_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = made(tmp_path / "ostinato.toml", owner=STRANGER)
    monkeypatch.setenv("SUDO_UID", str(STRANGER))
    load_settings(tmp_path)
    monkeypatch.setenv("SUDO_UID", "1")
    with pytest.raises(InvalidInput, match=f"{path} is not trusted"):
        load_settings(tmp_path)


def test_doctor_tells_what_is_trusted(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    def trust() -> tuple[str, str]:
        (found,) = [one for one in cli.ok("doctor", "--json").json if one["check"] == "trust"]
        return found["status"], found["text"]

    assert trust() == ("ok", "only files of root and of this user that nobody else may write to")
    monkeypatch.setenv(VARIABLE, "/srv/jobs")
    assert trust()[1].endswith("and what is in /srv/jobs")
    monkeypatch.setenv(VARIABLE, "*")
    assert trust()[0] == "warn"


@needs_root
@pytest.mark.parametrize("suffix", ["", "-wal"])
def test_doctor_says_under_trust_that_the_database_is_a_strangers(cli: CommandLine, suffix: str) -> None:
    cli.ok("db", "migrate")
    planted = cli.folder / f"ostinato.db{suffix}"
    planted.touch()
    os.chown(planted, STRANGER, -1)
    refused = cli("doctor", "--json")
    assert refused.code == 1
    (failed,) = [one for one in refused.json if one["status"] == "fail"]
    assert failed["check"] == "trust"
    assert f"ostinato.db is not trusted: {planted if suffix else 'it'} belongs to " in failed["text"]
    assert failed["fix"] == f"if you trust it: export {VARIABLE}={cli.folder}/ostinato.db"


@pytest.mark.parametrize("relative", [".", "jobs", "/srv/jobs:jobs", "~nobody-of-this-name/jobs"])
def test_a_relative_path_to_trust_is_refused(cli: CommandLine, relative: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, relative)
    refused = cli("run", "ls")
    assert refused.code == 2
    wrong = relative.rpartition(":")[2]
    assert f"{VARIABLE} cannot hold '{wrong}', which is relative; give whole paths" in refused.err.replace("\n", " ")


def test_a_place_to_trust_may_be_said_from_the_home(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = made(tmp_path / "shared.db", 0o666)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv(VARIABLE, "~/shared.db")
    require_trusted_database(str(shared))
