"""What HTTP work sends: the request of a work, and the one after a redirect."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from ostinato import Http
from ostinato.execution.executors.http.request import (
    Refusal,
    Request,
    Target,
    first_request,
    next_request,
)


def request_of(work: Http, resolved: Mapping[str, str] | None = None, key: str = "run-7") -> Request:
    return first_request(work, work.headers if resolved is None else resolved, key, "1.2")


def test_a_request_says_who_sends_it_and_which_run_it_belongs_to() -> None:
    assert request_of(Http("get", "http://example.com")).fields == [
        (b"Host", b"example.com"),
        (b"User-Agent", b"Ostinato/1.2"),
        (b"Accept", b"*/*"),
        (b"Accept-Encoding", b"identity"),
        (b"Idempotency-Key", b"run-7"),
        (b"Connection", b"close"),
    ]


def test_json_and_text_are_sent_with_their_type_and_length() -> None:
    request = request_of(Http("POST", "https://example.com:8443/a?b=c", json={"a": "ä"}))
    assert (request.body, request.target.resource) == ('{"a":"ä"}'.encode(), "/a?b=c")
    assert request.fields[0] == (b"Host", b"example.com:8443")
    assert {(b"Content-Type", b"application/json"), (b"Content-Length", b"10")} < set(request.fields)
    text = request_of(Http("PUT", "https://example.com", body="ä"))
    assert (text.body, text.headers["Content-Type"]) == ("ä".encode(), "text/plain; charset=utf-8")
    assert (b"Content-Length", b"0") in request_of(Http("POST", "https://example.com")).fields


def test_what_the_work_says_goes_before_what_is_usual() -> None:
    given = {"user-agent": "me", "ACCEPT": "text/plain", "idempotency-key": "mine", "Content-Type": "a/b", "Host": "h"}
    request = request_of(Http("POST", "https://example.com", headers={**given, "Authorization": "x"}, json=1))
    assert request.headers == {**given, "Authorization": "x", "Accept-Encoding": "identity"}
    assert [value for name, value in request.fields if name == b"Host"] == [b"h"]


@pytest.mark.parametrize("name", ["Content-Length", "transfer-encoding", "Connection"])
def test_how_it_is_sent_is_not_for_the_work_to_say(name: str) -> None:
    fields = request_of(Http("POST", "https://example.com", headers={name: "chunked"}, body="x")).fields
    assert b"chunked" not in dict(fields).values()
    assert [value for name, value in fields if name == b"Content-Length"] == [b"1"]


def test_a_header_is_sent_in_bytes_and_without_the_spaces_around_it() -> None:
    given = {"X-One": "  a b\t", "X-Two": "grün", "X-Three": "日本", "X-Four": ""}
    fields = dict(request_of(Http("GET", "https://example.com", headers=given)).fields)
    assert [fields[name.encode()] for name in given] == [b"a b", b"gr\xfcn", "日本".encode(), b""]


def test_a_secret_with_a_line_break_is_refused_without_being_shown() -> None:
    work = Http("GET", "https://example.com", headers={"X-Token": "file:token"})
    with pytest.raises(Refusal, match="its header X-Token has a line break") as caught:
        request_of(work, {"X-Token": "one\r\nHost: two"})
    assert "two" not in str(caught.value)


def test_a_key_that_cannot_stand_in_a_header_is_escaped() -> None:
    assert request_of(Http("GET", "http://e"), key="mail 7").headers["Idempotency-Key"] == "mail 7"
    assert request_of(Http("GET", "http://e"), key="ä\nb").headers["Idempotency-Key"] == "%C3%A4%0Ab"


def test_a_shown_url_has_no_query() -> None:
    target = Target.of("https://example.com/a?token=secret#part")
    assert (target.shown, target.url) == ("https://example.com/a", "https://example.com/a?token=secret")


@pytest.mark.parametrize(
    ("url", "host", "resource"),
    [
        ("http://EXAMPLE.com./a%20b?c=%20", "example.com", "/a%20b?c=%20"),
        ("http://bücher.example/ä", "xn--bcher-kva.example", "/%C3%A4"),
        ("http://[::1]:80/a[b]", "::1", "/a[b]"),
        ("http://0x7f000001/", "0x7f000001", "/"),
    ],
)
def test_a_url_is_sent_as_it_is_but_for_what_cannot_be(url: str, host: str, resource: str) -> None:
    target = Target.of(url)
    assert (target.host, target.resource) == (host, resource)


# Redirects.

SECRETS = {"Authorization": "Bearer t", "cookie": "a=b", "X-Key": "secret", "X-Plain": "shown", "Content-Type": "a/b"}
GIVEN = {**SECRETS, "X-Key": "env:KEY"}


def first(method: str = "POST", url: str = "https://one.example/a/b") -> Request:
    return request_of(Http(method, url, headers=GIVEN, body="x"), SECRETS)


@pytest.mark.parametrize(
    ("status", "method", "becomes"),
    [
        (301, "POST", "GET"),
        (302, "POST", "GET"),
        (303, "POST", "GET"),
        (303, "PUT", "GET"),
        (303, "HEAD", "HEAD"),
        (301, "PUT", "PUT"),
        (302, "DELETE", "DELETE"),
        (307, "POST", "POST"),
        (308, "POST", "POST"),
    ],
)
def test_a_redirect_keeps_the_method_and_body_or_makes_it_a_get(status: int, method: str, becomes: str) -> None:
    request = next_request(first(method), status, "/c")
    assert request.method == becomes
    assert request.body == (None if becomes == "GET" else b"x")
    assert ("Content-Type" in request.headers) == (becomes != "GET")
    assert request.target.url == "https://one.example/c"


@pytest.mark.parametrize("location", ["https://two.example/", "//two.example", "https://one.example:444/a"])
def test_another_origin_gets_no_header_that_the_work_gave_but_for_harmless_ones(location: str) -> None:
    request = next_request(first(), 303, location)
    assert not {"Authorization", "cookie", "X-Key", "X-Plain"} & set(request.headers)
    assert {"User-Agent", "Accept", "Idempotency-Key"} <= set(request.headers)
    # Nor does the first one get them back.
    assert "X-Key" not in next_request(request, 307, "https://one.example/").headers
    asked = request_of(Http("GET", "https://one.example", headers={"Accept-Language": "eo", "X-Tenant": "7"}))
    followed = next_request(asked, 307, location).headers
    assert (followed.get("Accept-Language"), followed.get("X-Tenant")) == ("eo", None)


@pytest.mark.parametrize("status", [307, 308])
@pytest.mark.parametrize("location", ["https://two.example/", "https://one.example:444/a"])
def test_another_origin_gets_no_body(location: str, status: int) -> None:
    with pytest.raises(Refusal, match="another origin, which the body is not for"):
        next_request(first("POST"), status, location)
    assert next_request(first("POST"), status, "/elsewhere").body == b"x"
    assert next_request(first("POST"), 303, location).body is None


@pytest.mark.parametrize("location", ["c", "/c", "?q", "https://one.example:443/c", "https://ONE.example./c"])
def test_the_same_origin_gets_all_of_it(location: str) -> None:
    assert next_request(first(), 307, location).headers == first().headers


def test_a_host_of_the_works_own_is_none_of_another_origin() -> None:
    request = request_of(Http("GET", "http://one.example", headers={"Host": "virtual", "Authorization": "x"}))
    assert "Authorization" in next_request(request, 302, "/b").headers
    assert not {"Authorization", "Host"} & set(next_request(request, 302, "https://one.example/b").headers)


@pytest.mark.parametrize(
    ("location", "why"),
    [
        ("http://one.example/a", "which is not encrypted"),
        ("ftp://one.example/a", "only http and https are called, not ftp"),
        ("file:///etc/passwd", "only http and https are called, not file"),
        ("javascript:alert(1)", "only http and https are called, not javascript"),
        ("https://one.example:99999/", "redirects to an address that cannot be called"),
        ("https://[::1/", "redirects to an address that cannot be called"),
    ],
)
def test_a_redirect_to_somewhere_else_is_not_followed(location: str, why: str) -> None:
    with pytest.raises(Refusal, match=why):
        next_request(first(), 302, location)


def test_a_location_may_hold_what_should_have_been_escaped() -> None:
    assert next_request(first(), 302, "/a b\u00c3\u00a4?c d").target.resource == "/a%20b%C3%A4?c%20d"
