"""References to secrets, and the mask that hides what they stand for."""

from __future__ import annotations

import base64
import hashlib
import os
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ostinato.config import passwords_in, without_password
from ostinato.errors import InvalidInput
from ostinato.execution.secrets import HIDDEN, MOST_OF_FILE, NO_SECRETS, Mask, embedded, resolve_all


def test_a_reference_is_resolved_and_its_value_is_a_secret(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("abc-123\n")
    values = {"A": "env:TOKEN", "B": "file:token", "C": "plain", "D": "my env:TOKEN"}
    resolved, secrets = resolve_all(values, {"TOKEN": "hunter2"}, tmp_path)
    assert resolved == {"A": "hunter2", "B": "abc-123", "C": "plain", "D": "my env:TOKEN"}
    assert secrets == ["hunter2", "abc-123"]


def test_in_a_header_a_word_may_stand_before_it(tmp_path: Path) -> None:
    values = {"Authorization": "Bearer env:TOKEN", "X-Key": "env:TOKEN", "Accept": "*/*"}
    resolved, secrets = resolve_all(values, {"TOKEN": "hunter2"}, tmp_path, headers=True)
    assert resolved == {"Authorization": "Bearer hunter2", "X-Key": "hunter2", "Accept": "*/*"}
    assert secrets == ["hunter2", "hunter2"]


def test_an_absolute_path_and_the_home_folder_are_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "token").write_text("abc-123")
    monkeypatch.setenv("HOME", str(tmp_path))
    values = {"A": f"file:{tmp_path}/token", "B": "file:~/token"}
    assert resolve_all(values, {}, Path("/nowhere"))[0] == {"A": "abc-123", "B": "abc-123"}


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("env:TOKEN", "A is env:TOKEN, but the engine's environment has no TOKEN"),
        ("file:none", "none cannot be read: No such file or directory"),
        ("file:.", "cannot be read: it is not a plain file"),
        ("file:latin", "cannot be read: it is not UTF-8"),
        ("file:pipe", "cannot be read: it is not a plain file"),
        ("file:/dev/zero", "cannot be read: it is not a plain file"),
        ("file:large", "cannot be read: it has more than 64 KB"),
        ("file:~nosuchuser/x", "cannot be read: there is no home folder of ~nosuchuser"),
        ("file:a\0b", "cannot be read: embedded null byte"),
    ],
)
def test_what_is_missing_is_told_with_its_place(tmp_path: Path, value: str, told: str) -> None:
    (tmp_path / "latin").write_bytes(b"caf\xe9")
    (tmp_path / "large").write_bytes(b"x" * (MOST_OF_FILE + 1))
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InvalidInput) as error:
        resolve_all({"A": value}, {}, tmp_path)
    assert told in str(error.value)
    assert error.value.field == "A"


@pytest.mark.parametrize(
    ("url", "passwords"),
    [
        ("sqlite:///ostinato.db", []),
        ("postgresql://me@host/jobs", []),
        ("postgresql://me:hunter2@host/jobs", ["hunter2", "hunter2"]),
        ("postgresql://me:p%40ss@host/jobs?sslpassword=other", ["other", "p%40ss", "other", "p@ss"]),
        ("postgresql://postgres:postgres@host/jobs", ["postgres:postgres@", "postgres:postgres@"]),
    ],
)
def test_the_passwords_of_a_database_are_found(url: str, passwords: list[str]) -> None:
    assert passwords_in(url) == passwords
    assert not any(password in without_password(url) for password in passwords)


@pytest.mark.parametrize(
    ("value", "is_header", "found"),
    [
        ("Token token=env:TOK", True, "env:TOK"),
        ("two words env:TOK", True, "env:TOK"),
        ("postgres://u:env:TOK@h", False, "env:TOK"),
        ("key file:~/key.txt", False, "file:~/key.txt"),
        ("env:TOK", False, None),
        ("Bearer env:TOK", True, None),
        ("file:///etc/hosts", False, None),
        ("url=file:///etc/hosts", False, None),
        ("profile:x venv:y env: file:", False, None),
    ],
)
def test_what_looks_like_a_reference_within_a_value_is_found(value: str, is_header: bool, found: str | None) -> None:
    assert embedded({"A": value, "B": "plain"}, headers=is_header) == ({} if found is None else {"A": found})


def test_a_mask_hides_every_occurrence_and_the_longest_first() -> None:
    mask = Mask(["hunter2", "hunter2-more"])
    assert mask.hide("a hunter2-more b hunter2 c hunter2") == "a *** b *** c ***"
    assert mask.hide_in(None) is None
    assert NO_SECRETS.hide("hunter2") == "hunter2"


def test_a_secret_of_several_lines_is_hidden_line_by_line() -> None:
    mask = Mask(["-----BEGIN-----\nabcdefgh\n}\n"])
    assert mask.hide("key: abcdefgh }") == "key: *** }", "what is too short is ordinary text"


def test_what_is_too_short_is_not_hidden() -> None:
    assert Mask(["", "abc", "\n"]).hide("abc") == "abc"


def test_a_secret_is_hidden_as_json_and_logs_write_it_too() -> None:
    mask = Mask(['pass"wörd\\'])
    assert mask.hide(msgspec.json.encode({"a": 'pass"wörd\\'}).decode()) == '{"a":"***"}'
    assert mask.hide('"pass\\"w\\u00f6rd\\\\"') == '"***"'
    assert Mask(["caf\udce9-secret"]).hide("caf\\xe9-secret caf\\udce9-secret") == "*** ***"


@pytest.mark.parametrize("secret", ["hunter2?x/y+z", "hunter22", "correct horse", "grün/ist\\nes"])
def test_a_secret_is_hidden_as_it_is_encoded_too(secret: str) -> None:
    mask, data = Mask([secret]), secret.encode()
    for encoded in (base64.b64encode(data), base64.urlsafe_b64encode(data), base64.b64encode(data + b"\n")):
        assert mask.hide(f"a {encoded.decode().rstrip('=')} b") == "a *** b"
    for written in (quote(secret, safe=""), quote_plus(secret)):
        assert mask.hide(f"a={written}&b") == "a=***&b"


@pytest.mark.parametrize("secret", ["s3cr3tvalue", "hunter22", "hunter2?>/y", "grün-ist-es"])
@pytest.mark.parametrize("before", ["", "u", "us", "user:", "user1:", "user12:"])
@pytest.mark.parametrize("behind", ["", ".", "..", "\n...\n"])
def test_a_secret_is_hidden_in_base64_of_more_than_itself(secret: str, before: str, behind: str) -> None:
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        encoded = encode(f"{before}{secret}{behind}".encode()).decode()
        shown = Mask([secret]).hide(encoded)
        assert HIDDEN in shown
        assert len(shown) - len(HIDDEN) <= len(encoded) - (len(secret.encode()) * 4 // 3 - 2)


def test_a_key_of_a_thousand_lines_is_hidden_as_one_of_a_few() -> None:
    lines = [hashlib.sha256(str(number).encode()).hexdigest()[: 10 + number % 50] for number in range(1_000)]
    mask = Mask(["\n".join(lines)])
    for line in lines:
        assert mask.hide(f"{'x' * (len(line) % 11)} {line}") == f"{'x' * (len(line) % 11)} ***"
    assert mask.hide("\n".join(lines)) == "\n".join([HIDDEN] * 1_000)
    assert mask.hide_cut(lines[0][5:] + "\n" + lines[49][:-5], begin=True, end=True) == "***\n***"


def test_the_key_in_several_lines_is_hidden_in_base64() -> None:
    key = "-----BEGIN-----\nabcdefgh\n-----END-----"
    assert Mask([key]).hide(base64.b64encode(key.encode()).decode().rstrip("=")) == "***"


def test_what_is_short_is_hidden_only_as_it_is() -> None:
    assert Mask(["ab/c"]).hide("ab%2Fc " + base64.b64encode(b"ab/c").decode()) == "ab%2Fc YWIvYw=="


def test_secrets_that_overlap_are_hidden_as_one() -> None:
    mask = Mask(["hunter2-secret", "secret-garden", "hunter2"])
    assert mask.hide("a hunter2-secret-garden b") == "a *** b"
    assert mask.hide("hunter2hunter2") == "******"


def test_of_two_secrets_the_longer_part_is_hidden() -> None:
    mask = Mask(["abcd-and-so-on-and-on", "0123456789abcdX"])
    assert mask.hide_cut("it is 0123456789abcd", end=True) == "it is ***"
    assert Mask(["hunter2", "hunter2-secret"]).hide_cut("it is hunter2-sec", end=True) == "it is ***"


def test_what_was_cut_is_looked_at_where_its_mark_stands() -> None:
    mask = Mask(["hunter2-secret"])
    assert mask.hide_in("it is hunter2-s…") == "it is ***…"
    assert mask.hide_in("it is hunter2-s\n…\n-secret") == "it is ***\n…\n***"
    assert (
        mask.hide_in("it is hunter2\n… 7 characters cut …\nret it is") == "it is ***\n… 7 characters cut …\nret it is"
    )
    assert mask.hide_in("hunter2 is…") == "hunter2 is…"


def test_a_short_line_is_hidden_first_and_cut_then() -> None:
    mask = Mask(["hunter2-secret"])
    assert mask.shortened(" a\n\tb ", 5) == "a b"
    assert mask.shortened("abcdef", 5) == "abcd…"
    assert mask.shortened("a hunter2-secret", 5) == "a ***"
    assert mask.shortened("x" * 8 + "hunter2-secret and more", 10) == "x" * 8 + "*…"
    assert mask.shortened(" " * 495 + "hunter2-secret", 10) == "***…", "nobody reads on"


def test_many_marks_and_a_long_secret_take_no_time() -> None:
    mask = Mask(["-----BEGIN-----\n" + "a" * 60_000])
    assert len(mask.hide_in("----…" * 50_000) or "") > 100_000
    assert mask.hide_cut("b" * 1_000_000 + "a" * 1_000, end=True) == "b" * 1_000_000 + "***"


def test_the_beginning_of_a_secret_is_hidden_where_its_line_is_not_finished() -> None:
    mask = Mask(["hunter2-secret"])
    assert mask.hide_cut("password: hunter", end=True) == "password: ***"
    assert mask.hide_cut("password: hun", end=True) == "password: hun", "too little of it to tell"
    assert mask.hide_cut("hunter said", end=True) == "hunter said"


def test_the_end_of_a_secret_is_hidden_where_its_beginning_was_cut() -> None:
    mask = Mask(["hunter2-secret"])
    assert mask.hide_cut("2-secret is it", begin=True) == "*** is it"
    assert mask.hide_cut("ret is it", begin=True) == "ret is it", "too little of it to tell"
    assert mask.hide_cut("ter2-s", begin=True) == "***"


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.sampled_from(["1234", "a 1234 b", "", "x"]),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["1234", "name"]), inner),
    max_leaves=10,
)


def test_json_that_only_others_can_read_is_hidden_as_text() -> None:
    assert Mask(["hunter22"]).hide_json('{"a":"hunter22","n":1e400}') == '{"a":"***","n":1e400}'


@given(JSON)
def test_json_stays_json_and_keeps_its_numbers(value: Any) -> None:
    hidden = Mask(["1234"]).hide_json(msgspec.json.encode(value).decode())
    assert msgspec.json.decode(hidden) == expected(value)


def expected(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace("1234", HIDDEN)
    if isinstance(value, list):
        return [expected(item) for item in value]
    if isinstance(value, dict):
        return {expected(name): expected(item) for name, item in value.items()}
    return value
