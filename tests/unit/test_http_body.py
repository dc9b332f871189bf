"""The body of an answer, as it comes in pieces: unpacked, decoded, and what of it is shown."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ostinato.clock import to_micros
from ostinato.execution.executors.http.body import Body
from ostinato.execution.executors.http.executor import retry_after
from ostinato.execution.executors.http.request import Refusal, Trouble


def headers(**given: str) -> dict[str, str]:
    return {name.replace("_", "-").lower(): value for name, value in given.items()}


def add(body: Body, piece: bytes) -> None:
    for _ in body.adding(piece):
        pass


def taken(*pieces: bytes, **given: str) -> tuple[str, Body]:
    written: list[str] = []
    body = Body(headers(**given), written.append)
    for piece in pieces:
        add(body, piece)
    body.end()
    return "".join(written), body


TEXT = {"Content_Type": "text/plain"}


@pytest.mark.parametrize(
    ("content_type", "data", "shown"),
    [
        ("text/plain", "grün".encode(), "grün"),
        ("text/plain; charset=latin-1", b"gr\xfcn", "grün"),
        ('text/plain; charset="UTF-16LE"', "grün".encode("utf-16-le"), "grün"),
        ("text/plain; charset=shift_jis", "日本".encode("shift_jis"), "日本"),
        ("text/plain; charset=nonsense", "grün".encode(), "grün"),
        ("text/plain; charset=hex", b"abc", "abc"),
        ("text/plain; charset=punycode", b"abc-", "abc-"),
        ("text/plain", b"a\xffb", "a\\xffb"),
        ("text/plain; charset=shift_jis", b"a\xff", "a\\xff"),
        ("application/problem+json", b"{}", "{}"),
        ("application/xml", b"<a/>", "<a/>"),
        ("image/svg+xml", b"<svg/>", "<svg/>"),
    ],
)
def test_text_is_decoded_however_it_is_cut(content_type: str, data: bytes, shown: str) -> None:
    assert taken(data, Content_Type=content_type)[0] == shown
    assert taken(*(data[at : at + 1] for at in range(len(data))), Content_Type=content_type)[0] == shown


def test_what_is_no_text_is_counted_and_not_shown() -> None:
    shown, body = taken(b"\x89PNG", b"\0" * 100, Content_Type="image/png")
    assert shown == "ostinato: 104 bytes of image/png, not shown\n"
    assert (body.size, body.type, body.json, body.gist) == (104, "image/png", None, "")
    assert taken(b"a\0b")[0] == "ostinato: 3 bytes of unknown type, not shown\n"
    assert taken(b"ab")[0] == "ab"
    assert taken(b"ab", **TEXT, Content_Encoding="br")[0] == "ostinato: 2 bytes of text/plain, not shown\n"
    assert taken(Content_Type="image/png")[0] == ""


@given(st.binary(), st.sampled_from(["gzip", "x-gzip", "deflate", "bare"]), st.integers(1, 20))
def test_what_was_packed_is_unpacked_however_it_is_cut(data: bytes, how: str, size: int) -> None:
    bare = zlib.compressobj(wbits=-15)
    packed = {
        "gzip": gzip.compress(data),
        "x-gzip": gzip.compress(data[:3]) + gzip.compress(data[3:]) + b"\0\0",
        "deflate": zlib.compress(data),
        "bare": bare.compress(data) + bare.flush(),
    }[how]
    # The frame of deflate is known by its first two bytes.
    pieces = [packed[:2], *(packed[at : at + size] for at in range(2, len(packed), size))]
    shown, body = taken(
        *pieces, Content_Type="text/plain; charset=latin-1", Content_Encoding=how.replace("bare", "deflate")
    )
    assert shown == data.decode("latin-1")
    assert body.size == len(data)


def test_packed_text_that_is_broken_or_broken_off_is_trouble() -> None:
    with pytest.raises(Trouble, match="cannot be decompressed: it is not gzip"):
        taken(b"hello", **TEXT, Content_Encoding="gzip")
    with pytest.raises(Trouble, match="cannot be decompressed: its gzip data broke off"):
        taken(gzip.compress(b"hello")[:-1], **TEXT, Content_Encoding="gzip")


def test_a_bomb_is_refused_and_never_held() -> None:
    bomb = gzip.compress(b"\0" * 30_000_000)
    packed = headers(Content_Type="image/png", Content_Encoding="gzip")
    body = Body(packed, lambda _: None, most_unpacked=20_000_000)
    tracemalloc.start()
    try:
        with pytest.raises(Refusal, match="decompresses to more than 19 MB"):
            add(body, bomb)
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()


def test_what_unpacks_to_much_lets_others_go_on_in_between() -> None:
    written: list[str] = []
    body = Body(headers(**TEXT, Content_Encoding="gzip"), written.append)
    steps = [len(written) for _ in body.adding(gzip.compress(b"x" * 10_000_000))]
    assert steps == list(range(1, 154))
    assert max(map(len, written)) <= 65_536


@pytest.mark.parametrize(
    ("content_type", "data", "expected"),
    [
        ("application/json", b'{"a": [1, null]}', {"a": [1, None]}),
        ("application/vnd.x+json; charset=utf-8", b"7", 7),
        ("application/json", b'\xef\xbb\xbf{"a": 1}', {"a": 1}),
        ("text/plain", b' {"a": 1}', {"a": 1}),
        ("text/plain", b"7", None),
        ("application/json", b"{broken", None),
        ("application/json", b"[" * 60_000, None),
        ("application/json", b'"' + b"x" * 65_534 + b'"', "x" * 65_534),
        ("application/json", b'"' + b"x" * 65_535 + b'"', None),
        ("application/json", b"", None),
        ("image/png", b"{}", None),
    ],
)
def test_json_that_is_not_too_long_is_parsed(content_type: str, data: bytes, expected: Any) -> None:
    assert taken(data, Content_Type=content_type)[1].json == expected


@pytest.mark.parametrize(
    ("content_type", "data", "gist"),
    [
        ("text/plain", b"\n\n  no such\tthing \nmore", "no such thing"),
        ("application/json", b'{\n  "detail": "no such thing"\n}', "no such thing"),
        ("application/json", b'{"error": {"message": "x"}}', '{"error": {"message": "x"}}'),
        ("text/html", b"<html>", ""),
        ("image/png", b"x", ""),
        ("text/plain", b"\x1b[31mred\x07", "[31mred"),
        ("text/plain", b"x" * 1000, "x" * 199 + "…"),
    ],
)
def test_the_gist_is_one_line_that_helps(content_type: str, data: bytes, gist: str) -> None:
    assert taken(data, Content_Type=content_type)[1].gist == gist


NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        ({"Retry_After": "120"}, 120),
        ({"Retry_After": " 0 "}, 0),
        ({"Retry_After": "999999999"}, 86_400),
        ({"Retry_After": "9" * 5000}, None),
        ({"Retry_After": "-5"}, None),
        ({"Retry_After": "soon"}, None),
        ({"Retry_After": ""}, None),
        ({}, None),
        ({"Retry_After": "Thu, 01 Jan 2026 00:05:00 GMT"}, 300),
        ({"Retry_After": "Thu, 01 Jan 2026 00:05:00 -0000"}, 300),
        ({"Retry_After": "Thu, 01 Jan 2026 00:05:00 GMT", "Date": "nonsense"}, 300),
        ({"Retry_After": "Thu, 01 Jan 2026 00:05:00 GMT", "Date": "Thu, 01 Jan 2026 00:04:00 GMT"}, 60),
        ({"Retry_After": "Wed, 31 Dec 2025 00:05:00 GMT"}, 0),
        ({"Retry_After": "Thu, 01 Jan 2099 00:05:00 GMT"}, 86_400),
    ],
)
def test_retry_after_is_read_as_seconds_or_as_a_date(given: dict[str, str], seconds: int | None) -> None:
    found = retry_after(headers(**given), lambda: to_micros(NOW))
    assert found == (None if seconds is None else timedelta(seconds=seconds))
