"""`ostinato notify`: what each verb does, prints and exits with."""

from __future__ import annotations

import contextlib
import io
import sys

import apsw
import pytest

from tests.doors.command_line import CommandLine, eventually
from tests.engine.http_server import answer, serving

URL = "json://user:secret@example.org/token"
CHANNEL_KEYS = [
    "name",
    "url",
    "note",
    "quiet",
    "digest",
    "zone",
    "cool_down",
    "created_at",
    "sent_at",
    "failures",
    "error",
    "retry_at",
    "waiting",
    "waits",
]
RULE_KEYS = ["id", "channel", "on", "project", "digest", "zone", "digest_at", "created_at"]


class Piped(io.TextIOWrapper):
    """What is written into standard input."""

    def __init__(self, text: str) -> None:
        super().__init__(io.BytesIO(text.encode()))


def test_a_channel_is_added_changed_shown_and_removed_without_its_secret(cli: CommandLine) -> None:
    added = cli.ok("notify", "add", "phone", URL, "--quiet", "22:00-07:00", "--note", "Ann's")
    assert (
        added.err == "added: channel 'phone', json://***@example.org/***; 'ostinato notify test phone' sends a test\n"
    )
    assert cli.ok("notify", "add", "phone", "--digest", "daily 08:00").err.startswith("changed: channel 'phone'")
    again = cli.ok("notify", "add", "phone", URL, "--quiet", "22:00-07:00", "--digest", "daily 08:00")
    assert again.err.startswith("unchanged: channel 'phone'")
    listed = cli.ok("notify", "ls")
    assert listed.out.splitlines()[0].split() == ["NAME", "URL", "LAST", "SENT", "STATE", "NOTE"]
    assert listed.out.splitlines()[1].split() == ["phone", "json://***@example.org/***", "never", "unused", "Ann's"]
    shown = cli.ok("notify", "show", "phone").out
    assert "quiet: 22:00-07:00 (UTC)" in shown
    assert "digest: daily 08:00 (UTC)" in shown
    assert "rules: none" in shown
    answers = [cli.ok("notify", *verb, "--json") for verb in (["ls"], ["show", "phone"], ["add", "phone", URL])]
    assert "secret" not in "".join([shown, listed.out, *(one.out for one in answers)])
    (channel,), *others = (one.json for one in answers)
    assert all(sorted(one) == sorted(CHANNEL_KEYS) for one in (channel, *others))
    assert cli.ok("notify", "rm", "phone").err == "removed: channel 'phone'\n"
    assert cli("notify", "rm", "phone").code == 3
    assert cli.ok("notify", "ls").err == "no channels: add one with 'ostinato notify add NAME URL'\n"


def test_a_url_comes_from_standard_input_or_is_a_reference(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Piped(f"{URL}\n"))
    assert cli.ok("notify", "add", "phone", "-", "--json").json["url"] == "json://***@example.org/***"
    assert cli.ok("notify", "add", "mail", "env:MAIL_URL", "--json").json["url"] == "env:MAIL_URL"


@pytest.mark.parametrize(
    "argv",
    [
        ["phone"],
        ["phone", "secret"],
        ["my phone", URL],
        ["phone", URL, "--quiet", "at night"],
        ["phone", URL, "--digest", "daily at eight"],
        ["phone", URL, "--cool-down", "soon"],
        ["phone", URL, "--tz", "Mars/Olympus"],
    ],
)
def test_a_wrong_channel_is_wrong_usage_and_does_not_repeat_its_url(cli: CommandLine, argv: list[str]) -> None:
    answer = cli("notify", "add", *argv)
    assert answer.code == 2
    assert "secret" not in answer.err
    assert cli.ok("notify", "ls", "--json").json == []


def test_rules_are_for_a_project_or_for_all(cli: CommandLine) -> None:
    cli.ok("notify", "add", "ops", URL)
    cli.ok("project", "add", "blog", ".")
    for wrong in ([], ["--project", "blog", "--all"], ["--all", "--on", "never"]):
        assert cli("notify", "rule", "add", "ops", *wrong).code == 2
    assert cli("notify", "rule", "add", "ops", "--project", "shop").code == 3
    assert cli("notify", "rule", "add", "nobody", "--all").code == 2
    added = cli.ok("notify", "rule", "add", "--on", "failed,broken,missed", "--project", "blog", "ops")
    assert added.err == "added: rule 1: failed, broken, missed, of project 'blog', for 'ops'\n"
    again = cli.ok("notify", "rule", "add", "--on", "broken,failed,missed", "--project", "blog", "ops")
    assert again.err.startswith("unchanged: rule 1")
    digest = cli.ok("notify", "rule", "add", "--all", "ops", "--digest", "daily 08:00", "--json").json
    assert sorted(digest) == sorted(RULE_KEYS)
    assert (digest["on"], digest["project"], digest["digest"]) == ([], None, "daily 08:00")
    rows = [line.split() for line in cli.ok("notify", "rule", "ls").out.splitlines()[1:]]
    assert rows[0] == ["1", "ops", "blog", "failed,broken,missed", "-"]
    assert rows[1] == ["2", "ops", "(all)", "-", "daily", "08:00", "(UTC)"]
    assert "rule 1: failed, broken, missed, of project 'blog'" in cli.ok("notify", "show", "ops").out
    assert cli.ok("notify", "rule", "rm", "1", "--json").json == {"id": 1, "removed": True}
    assert cli("notify", "rule", "rm", "1").code == 3
    assert [rule["id"] for rule in cli.ok("notify", "rule", "ls", "--json").json] == [2]


def test_a_schedule_names_only_channels_that_exist(cli: CommandLine) -> None:
    add = ["schedule", "add", "nightly", "daily 03:00", "--shell", "true"]
    refused = cli(*add, "--notify", "phone")
    assert refused.code == 2
    assert "there is no channel 'phone'" in refused.err
    assert cli("exec", "--shell", "true", "--notify", "phone").code == 2
    cli.ok("notify", "add", "phone", URL)
    cli.ok(*add, "--notify", "phone=failed+missed")
    kept = cli("notify", "rm", "phone")
    assert kept.code == 1
    assert "nightly" in kept.err
    removed = cli.ok("notify", "rm", "phone", "--force", "--json").json
    assert removed == {"name": "phone", "removed": True, "rules": 0, "schedules": ["nightly"]}


def test_the_log_is_empty_at_first(cli: CommandLine) -> None:
    assert cli.ok("notify", "log", "--json").json == []
    assert cli.ok("notify", "log").err.splitlines()[0] == "no messages: nothing was sent, and nothing waits"
    assert cli("notify", "log", "--state", "lost").code == 2


def _channels(cli: CommandLine, *flags: str) -> list[tuple[str, str]]:
    findings = cli("doctor", "--json", *flags).json
    return [(one["status"], one["text"]) for one in findings if one["check"] == "channels"]


def test_doctor_says_how_channels_fare_and_which_are_missing(cli: CommandLine) -> None:
    cli.ok("schedule", "ls")
    assert _channels(cli) == []
    cli.ok("notify", "add", "ops", "json://93.184.215.14/hook")
    assert _channels(cli) == [("ok", "1, none fails: ops")]
    cli.ok("notify", "add", "phone", "json://93.184.215.14/hook")
    cli.ok("schedule", "add", "nightly", "daily 03:00", "--shell", "true", "--notify", "phone=failed")
    cli.ok("notify", "rm", "phone", "--force")
    assert _channels(cli) == [("warn", "there is no 'phone', which nightly would tell")]
    with contextlib.closing(apsw.Connection(str(cli.folder / "ostinato.db"))) as connection:
        connection.execute("UPDATE channels SET failures = 3, error = 'it answered 500' WHERE name = 'ops'")
    assert ("warn", "'ops' failed 3 times in a row: it answered 500") in _channels(cli)


def test_a_test_message_is_sent_and_kept_in_the_log(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OSTINATO_NOTIFY_ALLOW", "127.0.0.1")
    with serving() as server:
        url = server.on("/phone", answer()).replace("http://", "json://")
        cli.ok("notify", "add", "phone", url)
        sent = cli.ok("notify", "test", "phone", "--json").json
        assert (sent["state"], sent["kind"], sent["channel"]) == ("sent", "test", "phone")
        (received,) = server.received
        assert sent["key"] in received.body.decode()
        assert cli.ok("notify", "log", "phone", "--json").json == [sent]
        assert cli.ok("notify", "ls", "--json").json[0]["sent_at"] is not None
        assert ("ok", "a test was sent to 'phone'") in _channels(cli, "--send")
        server.on("/phone", answer("500 Broken"))
        failed = cli("notify", "test", "phone")
    assert failed.code == 1
    assert "500" in failed.err


def test_where_nothing_may_be_sent_is_said_when_it_is_added_and_tested(cli: CommandLine) -> None:
    added = cli.ok("notify", "add", "phone", "json://127.0.0.1:9/hook")
    assert "warning: from this machine, nothing could be sent there" in added.err
    assert "notify_allow" in added.err
    tested = cli("notify", "test", "phone")
    assert (tested.code, tested.err.count("loopback address")) == (1, 1)
    assert "OSTINATO_NOTIFY_ALLOW=127.0.0.0/8" in tested.err.replace("\n", " ")
    assert "notify_allow" in _channels(cli)[0][1]
    for url in ("nonsense://secret", "slack://secret/x"):
        refused = cli("notify", "add", "odd", url)
        assert (refused.code, "apprise cannot use" in refused.err, "secret" in refused.err) == (2, True, False)
    assert "MISSING" in cli.ok("notify", "add", "mail", "env:MISSING").err


def test_what_waits_says_why_and_until_when(cli: CommandLine) -> None:
    cli.ok("notify", "add", "phone", URL)
    cli.ok("schedule", "add", "job", "every 1h", "--shell", "exit 3", "--retry", "0", "--notify", "phone")
    database = apsw.Connection(str(cli.folder / "ostinato.db"))
    database.execute(
        "INSERT INTO deliveries (key, at, channel, kind, subject, ready_at, data) VALUES ('k', 0, 'phone', 'failed', "
        "'job', 0, '{}')"
    )
    (waiting,) = cli.ok("notify", "log", "--json").json
    assert waiting["waits"] == {"reason": "no_node", "until": None, "text": "no engine is running"}
    assert "1 waits: no engine is running" in cli.ok("notify", "ls").out
    assert "pending" in cli.ok("notify", "log").out
    cli.ok("notify", "add", "phone", "--digest", "at 2999-01-01T08:00")

    def waits_for_digest() -> bool:
        (owed,) = cli.ok("notify", "log", "--json").json
        if not owed["ready_at"].startswith("2999"):
            return False  # the worker has yet to look at it
        (channel,) = cli.ok("notify", "ls", "--json").json
        told = {"reason": "digest", "until": "2999-01-01T08:00:00Z", "text": "digest of the channel"}
        return (channel["waiting"], channel["waits"]) == (1, told)

    with cli.start("worker"):
        eventually(waits_for_digest, "the message waits for the digest")
        assert "1 waits: until 2999-01-01" in cli.ok("notify", "ls").out
        assert "digest of the channel" in cli.ok("notify", "show", "phone").out
        assert " until 2999-01-01" in cli.ok("notify", "log").out


def test_the_log_of_a_channel_that_never_was_is_refused(cli: CommandLine) -> None:
    assert cli("notify", "log", "nope").code == 3
    cli.ok("notify", "add", "phone", "json://127.0.0.1:9/hook")
    assert cli.ok("notify", "log", "phone", "--json").json == []
    cli("notify", "test", "phone")
    cli.ok("notify", "rm", "phone")
    assert len(cli.ok("notify", "log", "phone", "--json").json) == 1
    assert cli.ok("notify", "log", "phone", "--state", "pending", "--json").json == []


def test_a_chat_is_a_channel_by_the_settings_alone(cli: CommandLine) -> None:
    refused = cli("schedule", "add", "a", "every 1h", "--shell", "true", "--notify", "telegram:42")
    assert (refused.code, "[telegram.chats]" in refused.err, "notify add" in refused.err) == (2, True, False)
    taken = cli("notify", "add", "telegram:42", "json://example.org/x")
    assert (taken.code, "[telegram.chats]" in taken.err) == (2, True)
    assert cli.ok("notify", "ls", "--json").json == []
