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
    assert request_of(Http("get", "http://example.com")).head == (
        b"GET / HTTP/1.1\r\nHost: example.com\r\nUser-Agent: Ostinato/1.2\r\nAccept: */*\r\n"
        b"Accept-Encoding: identity\r\nIdempotency-Key: run-7\r\nConnection: close\r\n\r\n"
    )


def test_json_and_text_are_sent_with_their_type_and_length() -> None:
    request = request_of(Http("POST", "https://example.com:8443/a?b=c", json={"a": "ä"}))
    assert request.body == '{"a":"ä"}'.encode()
    assert b"POST /a?b=c HTTP/1.1\r\nHost: example.com:8443\r\n" in request.head
    assert b"Content-Type: application/json\r\nContent-Length: 10\r\n" in request.head
    text = request_of(Http("PUT", "https://example.com", body="ä"))
    assert (text.body, text.headers["Content-Type"]) == ("ä".encode(), "text/plain; charset=utf-8")
    assert b"Content-Length: 0\r\n" in request_of(Http("POST", "https://example.com")).head


def test_what_the_work_says_goes_before_what_is_usual() -> None:
    given = {"user-agent": "me", "ACCEPT": "text/plain", "idempotency-key": "mine", "Content-Type": "a/b", "Host": "h"}
    request = request_of(Http("POST", "https://example.com", headers={**given, "Authorization": "x"}, json=1))
    assert request.headers == {**given, "Authorization": "x", "Accept-Encoding": "identity"}
    assert request.head.count(b"Host:") == 1


@pytest.mark.parametrize("name", ["Content-Length", "transfer-encoding", "Connection"])
def test_how_it_is_sent_is_not_for_the_work_to_say(name: str) -> None:
    head = request_of(Http("POST", "https://example.com", headers={name: "chunked"}, body="x")).head
    assert b"chunked" not in head
    assert head.count(b"Content-Length: 1\r\n") == 1


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
def test_another_origin_gets_no_secrets(location: str) -> None:
    request = next_request(first(), 303, location)
    assert {"Accept", "User-Agent", "Idempotency-Key"} <= set(request.headers)
    assert not {"Authorization", "cookie", "X-Key", "X-Plain"} & set(request.headers)
    # Nor does the first one get them back.
    assert not {"X-Key", "X-Plain"} & set(next_request(request, 307, "https://one.example/").headers)


@pytest.mark.parametrize("status", [307, 308])
@pytest.mark.parametrize("location", ["https://two.example/", "https://one.example:444/a"])
def test_another_origin_gets_no_body(status: int, location: str) -> None:
    with pytest.raises(Refusal, match="another origin, which does not get the body"):
        next_request(first(), status, location)
    without = request_of(Http("DELETE", "https://one.example/a"))
    assert next_request(without, status, location).method == "DELETE"


def test_other_origins_get_what_tells_nothing() -> None:
    given = {"Accept": "text/csv", "Accept-Language": "de", "User-Agent": "me", "Idempotency-Key": "mine"}
    request = request_of(Http("GET", "https://one.example/a", headers=given))
    headers = next_request(request, 307, "https://two.example/").headers
    assert {name: headers.get(name) for name in given} == {**given, "Idempotency-Key": None}


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
        ("https://one.example:99999/", "redirects to what cannot be called"),
        ("https://[::1/", "redirects to what cannot be called"),
    ],
)
def test_a_redirect_to_somewhere_else_is_not_followed(location: str, why: str) -> None:
    with pytest.raises(Refusal, match=why):
        next_request(first(), 302, location)


def test_a_location_may_hold_what_should_have_been_escaped() -> None:
    assert next_request(first(), 302, "/a b\u00c3\u00a4?c d").target.resource == "/a%20b%C3%A4?c%20d"
