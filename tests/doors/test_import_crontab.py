"""`ostinato schedule import-crontab`: what becomes of each line, and that commands mean what they meant to cron."""

from __future__ import annotations

import io
import os
import pwd
from pathlib import Path

import pytest

from ostinato import Ostinato
from ostinato.cli.schedule.crontab import names_of, read_crontab
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


def test_each_line_becomes_a_schedule_that_behaves_as_under_cron_and_twice_is_as_once(cli: CommandLine) -> None:
    (cli.folder / "crontab").write_text(CRONTAB)
    told = cli.ok("schedule", "import-crontab", "crontab", "--tz", "Europe/Berlin").err
    assert "line 9 is left out: @reboot" in told
    assert "cron mailed what the jobs print to ops@example.org" in told
    found = {one["name"]: one for one in cli.ok("schedule", "ls", "--json").json}
    assert len(found) == 3
    restic = found["restic"]
    assert (restic["timing"], restic["zone"]) == ("30 2 * * *", "Europe/Berlin")
    assert restic["work"]["command"] == "restic backup /srv"
    assert restic["work"]["folder"] == os.path.expanduser("~")
    assert restic["work"]["env"] == {"PATH": "/usr/local/bin:/usr/bin:/bin"}
    policy = restic["policy"]
    assert (policy["retry"]["max"], policy["timeout"], policy["catch_up"]) == (0, None, "none")
    assert policy["break_after"] == 1_000_000
    (tokyo,) = [one for one in found.values() if one["zone"] == "Asia/Tokyo"]
    assert tokyo["name"].startswith("manage.py-")
    again = cli.ok("schedule", "import-crontab", "crontab", "--tz", "Europe/Berlin").err
    assert again.count("unchanged: ") == 3
    cli.ok("schedule", "edit", "restic", "--timeout", "4h")
    cli.ok("schedule", "disable", "restic")
    assert cli.ok("schedule", "import-crontab", "crontab", "--tz", "Europe/Berlin").err.count("changed: 'restic'") == 1
    restic = cli.ok("schedule", "show", "restic", "--json").json
    assert (restic["policy"]["timeout"], restic["enabled"]) == (None, False)


def test_a_dry_run_shows_what_would_be_added_and_creates_nothing(cli: CommandLine) -> None:
    (cli.folder / "crontab").write_text(CRONTAB)
    shown = cli.ok("schedule", "import-crontab", "crontab", "--dry-run").out
    assert "restic" in shown
    jobs = cli.ok("schedule", "import-crontab", "crontab", "--dry-run", "--prefix", "web1-", "--json").json
    assert [(job["line"], job["timing"]) for job in jobs] == [(4, "30 2 * * *"), (5, "*/5 * * * 1-5"), (7, "@daily")]
    assert all(job["name"].startswith("web1-") for job in jobs)
    assert not (cli.folder / "ostinato.db").exists()


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
def test_a_line_that_cannot_be_read_is_named_and_nothing_is_added(line: str, told: str, cli: CommandLine) -> None:
    (cli.folder / "crontab").write_text(f"0 1 * * * fine\n{line}\n")
    answer = cli("schedule", "import-crontab", "crontab")
    assert (answer.code, told in answer.err) == (2, True), answer.err
    assert not (cli.folder / "ostinato.db").exists()
    assert cli("schedule", "import-crontab", "nowhere").code == 2


def test_a_system_crontab_names_users_whose_home_is_the_folder() -> None:
    (job, mine) = read_crontab(
        f"17 * * * * nobody  cd / && run-parts /etc/cron.hourly\n@weekly {pwd.getpwuid(os.getuid()).pw_name} tidy\n",
        "UTC",
        has_users=True,
    ).jobs
    assert (job.timing, job.user, job.command) == ("17 * * * *", "nobody", "cd / && run-parts /etc/cron.hourly")
    assert (_work(job).user, _work(job).folder) == ("nobody", pwd.getpwnam("nobody").pw_dir)
    assert (mine.timing, _work(mine).user) == ("@weekly", None)  # the engine's own
    with pytest.raises(InvalidInput, match="five fields or a macro, a user, and a command"):
        read_crontab("@daily backup\n", "UTC", has_users=True)


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


def test_names_are_those_of_the_programs_and_another_line_changes_none() -> None:
    lines = ["0 1 * * * /usr/bin/curl -s a", "0 2 * * * FOO=1 sudo -n curl -s b", "0 3 * * * [ -e x ] && y"]
    before = names_of(read_crontab("\n".join(lines), "UTC", has_users=False).jobs)
    assert before[0] != before[1]
    assert before[0].startswith("curl-")
    assert before[2] == "job"
    after = names_of(read_crontab("\n".join(["0 0 * * * curl c", *lines]), "UTC", has_users=False).jobs)
    assert after[1] == before[0]
