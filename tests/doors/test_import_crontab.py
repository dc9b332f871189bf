"""`ostinato schedule import-crontab`: what becomes of each line, and that commands mean what they meant to cron."""

from __future__ import annotations

import io
import os
import pwd
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ostinato import Ostinato
from ostinato.cli.schedule.crontab import read_crontab
from ostinato.cli.schedule.crontab_plan import base_name
from ostinato.cli.schedule.import_crontab import _work
from ostinato.config import Settings
from ostinato.errors import InvalidInput
from tests.doors.command_line import CommandLine

CRONTAB = """\
# m h dom mon dow command
PATH = "/usr/local/bin:/usr/bin:/bin"
MAILTO=ops@example.org
30 2 * * *     restic backup /srv
*/5 * * * 1-5  cd /srv/shop && ./manage.py clearsessions
CRON_TZ=Asia/Tokyo
@daily\tnice -n 10 ./manage.py report --day yesterday

@reboot        /usr/local/bin/start
"""


def imported(cli: CommandLine, text: str, *flags: str) -> dict[str, dict[str, Any]]:
    """Import this crontab, and answer every schedule that there is, by its command."""
    (cli.folder / "crontab").write_text(text)
    cli.ok("schedule", "import-crontab", "crontab", *flags)
    return by_command(cli)


def by_command(cli: CommandLine) -> dict[str, dict[str, Any]]:
    found = cli.ok("schedule", "ls", "--all", "--json").json
    assert len({one["work"]["command"] for one in found}) == len(found)
    return {one["work"]["command"]: one for one in found}


def test_each_line_becomes_a_schedule_that_behaves_as_under_cron_and_twice_is_as_once(cli: CommandLine) -> None:
    (cli.folder / "crontab").write_text(CRONTAB)
    told = cli.ok("schedule", "import-crontab", "crontab", "--tz", "Europe/Berlin").err
    assert "line 9 is left out: @reboot" in told
    assert "cron mailed what the jobs print to ops@example.org" in told
    found = by_command(cli)
    assert len(found) == 3
    restic = found["restic backup /srv"]
    name = restic["name"]
    assert name.startswith("restic-")
    assert (restic["timing"], restic["zone"]) == ("30 2 * * *", "Europe/Berlin")
    assert restic["work"]["folder"] == os.path.expanduser("~")
    assert restic["work"]["env"] == {"PATH": "/usr/local/bin:/usr/bin:/bin"}
    policy = restic["policy"]
    assert (policy["retry"]["max"], policy["timeout"], policy["catch_up"]) == (0, None, "none")
    assert policy["break_after"] == 1_000_000
    (tokyo,) = [one for one in found.values() if one["zone"] == "Asia/Tokyo"]
    assert tokyo["name"].startswith("manage.py-")
    again = cli.ok("schedule", "import-crontab", "crontab", "--tz", "Europe/Berlin").err
    assert again.count("unchanged: ") == 3
    cli.ok("schedule", "edit", name, "--timeout", "4h", "--note", "slow")
    cli.ok("schedule", "disable", name)
    dry = cli.ok("schedule", "import-crontab", "crontab", "--tz", "Europe/Berlin", "--dry-run", "--json").json
    assert [one["did"] for one in dry] == ["changed", "unchanged", "unchanged"]
    assert cli.ok("schedule", "import-crontab", "crontab", "--tz", "Europe/Berlin").err.count(f"changed: {name!r}") == 1
    restic = cli.ok("schedule", "show", name, "--json").json
    assert (restic["policy"]["timeout"], restic["enabled"]) == (None, False)


def test_no_change_of_a_crontab_makes_a_job_run_twice(cli: CommandLine) -> None:
    backup, prune = "restic backup /srv", "restic prune"
    name = imported(cli, f"30 2 * * * {backup}\n")[backup]["name"]
    found = imported(cli, f"30 2 * * * {backup}\n0 4 * * 0 {prune}\n")  # the same program again
    assert (found[backup]["name"], len(found)) == (name, 2)
    found = imported(cli, f"PATH=/bin\nCRON_TZ=Asia/Tokyo\n0 3 * * * {backup}\n0 4 * * 0 {prune}\n")  # the rest
    assert (found[backup]["name"], found[backup]["timing"], found[backup]["zone"]) == (name, "0 3 * * *", "Asia/Tokyo")
    assert found[backup]["work"]["env"] == {"PATH": "/bin"}
    assert len(found) == 2


def test_the_same_command_twice_is_two_schedules_that_each_keep_their_own(cli: CommandLine) -> None:
    def names(text: str) -> dict[tuple[str, str, str], str]:
        (cli.folder / "crontab").write_text(text)
        cli.ok("schedule", "import-crontab", "crontab", "--tz", "UTC")
        found = cli.ok("schedule", "ls", "--json").json
        return {(one["timing"], one["zone"], one["work"]["env"].get("A", "")): one["name"] for one in found}

    first = names("0 1 * * * sync\nA=1\n0 1 * * * sync\nCRON_TZ=Asia/Tokyo\n0 1 * * * sync\n")
    assert set(first) == {("0 1 * * *", "UTC", ""), ("0 1 * * *", "UTC", "1"), ("0 1 * * *", "Asia/Tokyo", "1")}
    second = names("0 5 * * * sync\n0 1 * * * sync\nA=1\n0 1 * * * sync\nCRON_TZ=Asia/Tokyo\n0 1 * * * sync\n")
    assert first.items() <= second.items()
    assert len(second) == 4
    third = names("0 1 * * * sync\nA=1\n0 2 * * * sync\nCRON_TZ=Asia/Tokyo\n0 1 * * * sync\n0 5 * * * sync\n")
    assert len(third) == 4
    assert sorted(third.values()) == sorted(second.values())
    assert third["0 1 * * *", "UTC", ""] == first["0 1 * * *", "UTC", ""]


def test_what_no_line_is_any_more_is_told_and_switched_off_if_asked(cli: CommandLine) -> None:
    old = imported(cli, "0 1 * * * tidy\n30 2 * * * restic backup /srv\n")
    tidy, restic = old["tidy"]["name"], old["restic backup /srv"]["name"]
    (cli.folder / "other").write_text("0 1 * * * tidy --other\n")
    assert "of an earlier import" not in cli.ok("schedule", "import-crontab", "other").err  # another crontab
    (cli.folder / "crontab").write_text("30 2 * * * restic backup /srv\n")
    told = cli.ok("schedule", "import-crontab", "crontab").err
    assert f"1 schedule of an earlier import, still on, no line is any more: {tidy!r}" in told
    assert by_command(cli)["tidy"]["enabled"]

    (cli.folder / "crontab").write_text("30 2 * * * restic backup /home\n")  # the same job, or another one?
    dry = cli.ok("schedule", "import-crontab", "crontab", "--dry-run", "--json")
    assert [(one["line"], one["did"]) for one in dry.json] == [(1, "added"), (None, "missing"), (None, "missing")]
    assert "without --dry-run this is refused" in dry.err
    refused = cli("schedule", "import-crontab", "crontab")
    assert (refused.code, f"no line is {restic!r} any more" in refused.err) == (2, True), refused.err
    assert len(by_command(cli)) == 3
    answers = cli.ok("schedule", "import-crontab", "crontab", "--disable-missing", "--json").json
    assert sorted(one["did"] for one in answers) == ["added", "disabled", "disabled"]
    on = {command for command, one in by_command(cli).items() if one["enabled"]}
    assert on == {"restic backup /home", "tidy --other"}
    (cli.folder / "crontab").write_text("30 2 * * * restic backup /etc\n")
    cli.ok("schedule", "import-crontab", "crontab", "--keep-missing")
    assert by_command(cli)["restic backup /home"]["enabled"]


def test_a_schedule_that_no_import_of_this_crontab_made_is_never_changed(cli: CommandLine) -> None:
    line = "30 2 * * * /opt/backup.sh\n"
    (job,) = read_crontab(line, "UTC", has_users=False).jobs
    name = base_name(job)
    cli.ok("schedule", "add", name, "every 5m", "--shell", "echo mine")
    (cli.folder / "crontab").write_text(f"0 1 * * * first\n{line}")
    (_, taken) = cli.ok("schedule", "import-crontab", "crontab", "--dry-run", "--json").json
    assert (taken["did"], taken["name"]) == ("taken", name)
    refused = cli("schedule", "import-crontab", "crontab")
    assert (refused.code, f"{name!r} (line 2)" in refused.err, "--prefix" in refused.err) == (2, True, True)
    assert list(by_command(cli)) == ["echo mine"]
    cli.ok("schedule", "import-crontab", "crontab", "--prefix", "cron-")
    (cli.folder / "moved").write_text(line)
    moved = cli("schedule", "import-crontab", "moved", "--prefix", "cron-")
    source = f"{socket.gethostname()}:{(cli.folder / 'crontab').resolve()}"
    assert (moved.code, f"it is of the crontab {source}:" in moved.err) == (2, True), moved.err
    again = cli.ok("schedule", "import-crontab", "moved", "--prefix", "cron-", "--source", source).err
    assert f"unchanged: 'cron-{name}'" in again


def test_a_dry_run_shows_what_would_be_added_and_creates_nothing(wrong_folder: CommandLine) -> None:
    (wrong_folder.folder / "crontab").write_text(CRONTAB)
    shown = wrong_folder.ok("schedule", "import-crontab", "crontab", "--dry-run").out
    assert [line.split()[:2] for line in shown.splitlines()[:2]] == [["LINE", "WHAT"], ["4", "added"]]
    assert "Asia/Tokyo" in shown
    jobs = wrong_folder.ok("schedule", "import-crontab", "crontab", "--dry-run", "--prefix", "web1-", "--json").json
    assert [(job["line"], job["timing"]) for job in jobs] == [(4, "30 2 * * *"), (5, "*/5 * * * 1-5"), (7, "@daily")]
    assert all(job["name"].startswith("web1-") for job in jobs)
    assert not (wrong_folder.folder / "ostinato.db").exists()


def test_flags_change_what_is_added_and_stdin_is_read(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("0 3 * * * backup.sh\n"))
    flags = ("--disabled", "--timeout", "2h", "--catch-up", "latest")
    (added,) = cli.ok("schedule", "import-crontab", "-", *flags, "--json").json
    assert (added["line"], added["did"], added["schedule"]["enabled"]) == (1, "added", False)
    assert added["schedule"]["policy"]["timeout"] == "2h"
    assert added["schedule"]["policy"]["catch_up"] == "latest"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("0 3 * *", "line 2 is '0 3 * *', not five fields or a macro, and a command"),
        ("0 3 31 2 * never", "line 2: "),
        ("0~30 3 * * * backup", "line 2: "),
    ],
)
def test_a_line_that_cannot_be_read_is_named_and_nothing_is_added(
    line: str, told: str, wrong_folder: CommandLine
) -> None:
    (wrong_folder.folder / "crontab").write_text(f"0 1 * * * fine\n{line}\n")
    answer = wrong_folder("schedule", "import-crontab", "crontab")
    assert (answer.code, told in answer.err) == (2, True), answer.err
    assert not (wrong_folder.folder / "ostinato.db").exists()
    assert wrong_folder("schedule", "import-crontab", "nowhere").code == 2


def test_a_system_crontab_names_users_whose_home_is_the_folder() -> None:
    (job, mine) = read_crontab(
        f"17 * * * * nobody  cd / && run-parts /etc/cron.hourly\n@weekly {pwd.getpwuid(os.getuid()).pw_name} tidy\n",
        "UTC",
        has_users=True,
    ).jobs
    assert (job.timing, job.user, job.command) == ("17 * * * *", "nobody", "cd / && run-parts /etc/cron.hourly")
    assert (_work(job).user, _work(job).folder) == ("nobody", pwd.getpwnam("nobody").pw_dir)
    assert (mine.timing, _work(mine).user) == ("@weekly", pwd.getpwuid(os.getuid()).pw_name)
    with pytest.raises(InvalidInput, match="five fields or a macro, a user, and a command"):
        read_crontab("@daily backup\n", "UTC", has_users=True)


@pytest.mark.parametrize("shell", ["", "/bin/bash", "/usr/bin/zsh", "bash", "/opt/wrap", "/usr/bin/perl"])
def test_commands_run_in_the_shell_of_the_crontab_as_cron_calls_it(shell: str) -> None:
    text = f"SHELL={shell}\n@daily [ a = a ]\n"
    (job,) = read_crontab(text, "UTC", has_users=False).jobs
    work = _work(job)
    if shell in ("bash", "/opt/wrap", "/usr/bin/perl"):  # which are no shells, or none that cron would find
        assert (work.command, work.interpreter) == ([shell, "-c", "[ a = a ]"], None)
    else:
        assert (work.command, work.interpreter) == ("[ a = a ]", shell or "/bin/sh")


def test_commands_keep_crons_sh_though_others_run_in_bash(cli: CommandLine) -> None:
    (found,) = imported(cli, "@daily echo $0\n").values()
    assert found["work"]["interpreter"] == "/bin/sh"
    ran = cli.ok("schedule", "import-crontab", "crontab", "--dry-run", "--json").json
    assert [one["work"]["interpreter"] for one in ran] == ["/bin/sh"]
    cli.ok("schedule", "edit", found["name"], "--interpreter", "none")  # as an earlier version imported it
    assert f"changed: {found['name']!r}" in cli.ok("schedule", "import-crontab", "crontab").err
    (found,) = by_command(cli).values()
    assert found["work"]["interpreter"] == "/bin/sh"


@pytest.mark.parametrize("shell", ["/bin/sh", "/bin/bash"])
def test_percent_signs_are_the_input_of_a_command_and_escaped_ones_are_themselves(shell: str, tmp_path: Path) -> None:
    text = f"SHELL={shell}\nGREETING=' hello '\nHOME={tmp_path}\n" + r"@daily pwd; cat; echo \%$GREETING\%%one%%two"
    (job,) = read_crontab(text, "UTC", has_users=False).jobs
    app = Ostinato(settings=Settings(db="sqlite://:memory:"))
    run = app.execute(_work(job))
    assert run.state == "succeeded", run.reason
    printed = app.runs.output(run.id)
    app.stop()
    assert printed.splitlines()[1:] == ["one", "", "two", "% hello %"]
    assert Path(printed.splitlines()[0]) == tmp_path.resolve()


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        (r"cat%", ""),
        (r"cat%%", "\n"),
        (r"cat%one%", "one\n"),
        (r"cat%one\%two\n", "one%two\\n\n"),
        (r"printf '\%s' 'a\\' ; cat%b\\%c", "a\\\\b\\%c\n"),
        (r"printf '\%s' a\\%b", "a\\"),
        ("printf 'a\x0bb\u2028c\x1dd'", "a\x0bb\u2028c\x1dd"),
    ],
)
def test_backslashes_and_odd_characters_mean_what_they_mean_to_cron(written: str, printed: str) -> None:
    (job,) = read_crontab(f"@daily {written}\n", "UTC", has_users=False).jobs
    found = subprocess.run(["/bin/sh", "-c", job.command], stdin=subprocess.DEVNULL, capture_output=True, check=True)
    assert found.stdout.decode() == printed


def test_a_random_delay_is_a_jitter(cli: CommandLine) -> None:
    text = "RANDOM_DELAY=6\n30 2 * * * backup\nRANDOM_DELAY=0\n@daily tidy\n"
    found = imported(cli, text)
    assert (found["backup"]["timing"], found["tidy"]["timing"]) == ("30 2 * * * jitter 6m stable", "@daily")
    assert found["backup"]["work"]["env"] == {}


def test_every_wrong_line_is_named_at_once(cli: CommandLine) -> None:
    text = b"0 3 * *\n# caf\xe9\nX=env:NOPE\n0 1 * * * caf\xe9\nRANDOM_DELAY=soon\n61 * * * * never\n0 1 * * * fine\n"
    (cli.folder / "crontab").write_bytes(text)
    answer = cli("schedule", "import-crontab", "crontab")
    assert answer.code == 2
    told = answer.err
    assert "5 lines are wrong" in told
    assert "line 1 is '0 3 * *'" in told
    assert "line 3: X=env:NOPE would be read as a reference to a secret" in told
    assert "line 4: it is not UTF-8" in told
    assert "line 5: RANDOM_DELAY cannot be 'soon'" in told
    assert "line 6: " in told
    assert "line 2" not in told


def test_a_name_that_cannot_be_one_leaves_all_lines_out(cli: CommandLine) -> None:
    (cli.folder / "crontab").write_text("0 1 * * * a\n0 2 * * * tidy-everything\n")
    for flags in (["--dry-run"], []):
        refused = cli("schedule", "import-crontab", "crontab", "--prefix", "p" * 190, *flags)
        assert (refused.code, "a schedule cannot be called 'ppp" in refused.err) == (2, True)
    assert cli.ok("schedule", "ls", "--json").json == []


def test_a_system_crontab_that_is_not_said_to_be_one_is_asked_about(cli: CommandLine) -> None:
    (cli.folder / "crontab").write_text("17 * * * * root run-parts hourly\n@daily nobody tidy --all\n")
    answer = cli("schedule", "import-crontab", "crontab", "--dry-run")
    assert (answer.code, "(nobody, root)" in answer.err, "--system" in answer.err) == (2, True, True), answer.err
    users = cli.ok("schedule", "import-crontab", "crontab", "--dry-run", "--json", "--system").json
    assert [one["work"]["user"] for one in users] == ["root", "nobody"]
    plain = cli.ok("schedule", "import-crontab", "crontab", "--dry-run", "--json", "--no-system").json
    assert plain[0]["work"]["command"] == "root run-parts hourly"
    (cli.folder / "crontab").write_text("17 * * * * root run-parts hourly\n@daily tidy --all\n")
    cli.ok("schedule", "import-crontab", "crontab", "--dry-run")


def test_help_says_what_holds_for_imported_lines(cli: CommandLine) -> None:
    told = " ".join(cli.ok("schedule", "import-crontab", "--help").out.replace("│", " ").split())
    assert "--disable-missing" in told
    assert "--once" not in told
    assert "--remaining" not in told
    assert "--delete-after-run" not in told
    for flag, default in (("retry", "0"), ("timeout", "none"), ("catch-up", "none"), ("break-after", "1000000")):
        assert f"[default: {default}]" in told.split(f" --{flag} ")[1].split(" --")[0], flag


def test_names_are_those_of_the_programs() -> None:
    lines = ["0 1 * * * /usr/bin/curl -s a", "0 2 * * * FOO=1 sudo -n curl -s b", "0 3 * * * [ -e x ] && y"]
    first, second, third = map(base_name, read_crontab("\n".join(lines), "UTC", has_users=False).jobs)
    assert first != second
    assert first.startswith("curl-")
    assert second.startswith("curl-")
    assert third.startswith("job-")


def test_a_name_is_no_flag_and_not_too_long_for_a_schedule() -> None:
    lines = ["0 1 * * * -curl a", "0 2 * * * .. b", f"0 3 * * * /bin/{'x' * 300}"]
    first, second, third = map(base_name, read_crontab("\n".join(lines), "UTC", has_users=False).jobs)
    assert (first.partition("-")[0], second.partition("-")[0]) == ("curl", "job")
    assert len(third) < 150
