"""The report that an agent leaves in its folder, and what others may have put there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ostinato.execution.executors.agent.report import ReportFile
from ostinato.models.ids import RunId

RUN = RunId(7)


def test_a_report_is_read_and_removed_with_its_folder(tmp_path: Path) -> None:
    report = ReportFile(tmp_path, RUN)
    assert report.path == tmp_path / ".ostinato" / "run-7-report.md"
    assert list((tmp_path / ".ostinato").iterdir()) == []
    report.path.write_bytes(b"caf\xe9")
    assert report.read() == "caf\\xe9"
    assert report.path.exists()
    report.remove()
    assert list(tmp_path.iterdir()) == []


def test_no_report_is_none(tmp_path: Path) -> None:
    report = ReportFile(tmp_path, RUN)
    assert report.read() is None
    (tmp_path / ".ostinato").rmdir()
    assert report.read() is None
    report.remove()
    assert list(tmp_path.iterdir()) == []


def test_the_folder_stays_while_somebody_needs_it(tmp_path: Path) -> None:
    one, other = ReportFile(tmp_path, RUN), ReportFile(tmp_path, RunId(8))
    one.remove()
    other.path.write_text("still here")
    assert other.read() == "still here"
    (tmp_path / ".ostinato" / "notes").touch()
    other.remove()
    assert os.listdir(tmp_path / ".ostinato") == ["notes"]


def test_what_an_earlier_attempt_left_is_not_taken_for_this_one(tmp_path: Path) -> None:
    ReportFile(tmp_path, RUN).path.write_text("old")
    assert ReportFile(tmp_path, RUN).read() is None


def test_a_long_report_is_cut_and_says_so(tmp_path: Path) -> None:
    report = ReportFile(tmp_path, RUN)
    report.path.write_text("x" * 256_005)
    text = report.read() or ""
    assert text.startswith("x" * 256_000)
    assert text.endswith("\n… cut after 256,000 bytes …\n")


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("do not tell")
    report = ReportFile(tmp_path, RUN)
    report.path.symlink_to(tmp_path / "secret")
    with pytest.raises(OSError, match="symbolic links"):
        report.read()
    report.remove()
    assert (tmp_path / "secret").read_text() == "do not tell"
    assert not (tmp_path / ".ostinato").exists()


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    report = ReportFile(tmp_path, RUN)
    os.mkfifo(report.path)
    with pytest.raises(OSError, match="not a plain file"):
        report.read()


def test_a_folder_in_its_place_is_not_read_and_nothing_is_left_open(tmp_path: Path) -> None:
    report = ReportFile(tmp_path, RUN)
    report.path.mkdir()
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(OSError, match="not a plain file"):
        report.read()
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_folder_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / ".ostinato").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match=r"irectory|symbolic"):
        ReportFile(tmp_path, RUN)
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_folder_that_became_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "run-7-report.md").write_text("do not tell")
    report = ReportFile(tmp_path, RUN)
    (tmp_path / ".ostinato").rmdir()
    (tmp_path / ".ostinato").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match=r"irectory|symbolic"):
        report.read()
    report.remove()
    assert (tmp_path / "elsewhere" / "run-7-report.md").exists()


def test_a_place_that_is_taken_by_a_file_is_an_error_at_once(tmp_path: Path) -> None:
    (tmp_path / ".ostinato").write_text("mine")
    with pytest.raises(OSError, match="irectory"):
        ReportFile(tmp_path, RUN)
    assert (tmp_path / ".ostinato").read_text() == "mine"
