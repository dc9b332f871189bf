"""The URL of a channel is a secret: what is shown of it, and what is hidden in what others say of it."""

from __future__ import annotations

import pytest

from ostinato.errors import InvalidInput
from ostinato.execution.secrets import Mask
from ostinato.models.channel_url import check_url, is_reference, mask_url, scheme_of, secrets_in


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("json://127.0.0.1:8000/", "json://127.0.0.1:8000"),
        ("json://ada:hunter2@hooks.example.org/in/4f2a", "json://***@hooks.example.org/***"),
        ("jsons://hooks.example.org?token=4f2a", "jsons://hooks.example.org/***"),
        ("mailto://ada:hunter2@example.org?to=bob@example.org", "mailto://***@example.org/***"),
        ("slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ", "slack://***"),
        ("pbul://o.gn5kj6nfhv736I7jC3cj3QLRiyhgl98b", "pbul://***"),
        ("tgram://123456:ABC-DEF/42", "tgram://***"),
        ("SLACK://T1JJ3T3L2", "slack://***"),
        ("matrixs://ada:hunter2@example.org/room", "matrixs://***@example.org/***"),
        ("matrixs://syt_token@example.org/room", "matrixs://***@example.org/***"),
        ("matrix://4f2a9c77", "matrix://***"),
        ("matrixs://ada@4f2a9c77", "matrixs://***"),
        ("Matrix://4f2a9c77/room?mode=t2bot", "matrix://***"),
        ("matrixs://ada:x@4f2a9c77/room?image=no&mode=T2Bot", "matrixs://***"),
        ("telegram://-10042", "telegram://-10042"),
        ("env:PHONE_URL", "env:PHONE_URL"),
        ("file:~/.phone", "file:~/.phone"),
        ("env://token", "env://***"),
        ("nonsense", "***"),
    ],
)
def test_only_what_is_no_secret_is_shown(url: str, shown: str) -> None:
    assert mask_url(url) == shown


def test_what_others_say_of_a_url_has_no_part_of_it() -> None:
    url = "json://ada:p%40ss@hooks.example.org/in/4f2a9c77?key=99887766"
    mask = Mask(secrets_in(url))
    for said in (url, "user p@ss is wrong", "POST /in/4f2a9c77 failed", "key=99887766", "p%40ss"):
        hidden = mask.hide(said)
        assert "***" in hidden
        assert not any(part in hidden for part in ("p@ss", "p%40ss", "4f2a9c77", "99887766"))
    assert mask.hide("A Connection error occurred sending JSON notification to hooks.example.org.").count("*") == 0


def test_the_token_that_stands_in_the_place_of_a_host_is_hidden() -> None:
    assert "T1JJ3T3L2" in secrets_in("slack://T1JJ3T3L2/A1BRTD4JD")
    for url in ("matrix://4f2a9c77", "matrixs://ada@4f2a9c77", "matrix://ada:x@4f2a9c77/room?mode=t2bot"):
        assert "4f2a9c77" in secrets_in(url)
    assert "example.org" not in secrets_in("matrixs://ada:hunter2@example.org/room")


def test_a_reference_is_told_from_a_url() -> None:
    assert is_reference("env:PHONE")
    assert is_reference("file:/etc/phone")
    assert not is_reference("json://host")
    assert (scheme_of("JSON://host"), scheme_of("env:PHONE")) == ("json", "")


@pytest.mark.parametrize(
    "url", ["", "phone", "json:/example.org", "telegram://bob", "telegram:42", "json://ex\nample.org", "json://***", 7]
)
def test_what_is_no_url_is_refused_and_not_repeated(url: object) -> None:
    with pytest.raises(InvalidInput) as error:
        check_url(url)
    assert error.value.field == "url"
    assert not url or str(url) not in str(error.value).removesuffix(error.value.hint or "") or url in (7, "json://***")


def test_a_url_is_taken_without_the_spaces_around_it() -> None:
    assert check_url(" json://example.org/a\n") == "json://example.org/a"
    assert check_url("env:PHONE_URL") == "env:PHONE_URL"
    assert check_url("telegram://-1001234") == "telegram://-1001234"
