"""Where the server is mounted, and what is asked for below that, whichever way a framework says it."""

from __future__ import annotations

from typing import Any

import pytest

from ostinato.api.prefix import PREFIX, below_prefix


def below(path: str, root: str = "", sent: str | None = None) -> tuple[str, str, bytes | None]:
    scope: dict[str, Any] = {"type": "http", "path": path, "root_path": root}
    if sent is not None:
        scope["raw_path"] = sent.encode()
    found = below_prefix(scope)
    assert found["root_path"] == ""
    return found[PREFIX], found["path"], found.get("raw_path")


@pytest.mark.parametrize(
    ("framework", "path", "root", "sent"),
    [
        ("Starlette", "/jobs/api/me", "/jobs", "/jobs/api/me"),
        ("Starlette without what was sent", "/jobs/api/me", "/jobs", None),
        ("a router that cuts the path", "/api/me", "/jobs", "/jobs/api/me"),
        ("Litestar", "/api/me/", "", "/jobs/api/me"),
        ("a proxy that has cut the path, and a server that is told so", "/api/me", "/jobs", "/api/me"),
    ],
)
def test_every_framework_leads_to_the_same_path(framework: str, path: str, root: str, sent: str | None) -> None:
    assert below(path, root, sent)[:2] == ("/jobs", "/api/me"), framework


def test_at_the_root_there_is_no_prefix() -> None:
    assert below("/api/me", "", "/api/me") == ("", "/api/me", b"/api/me")
    assert below("/api/me/", "", "/api/me/") == ("", "/api/me/", b"/api/me/")


@pytest.mark.parametrize(
    ("path", "root", "sent"),
    [("/jobs", "/jobs", "/jobs"), ("/jobs/", "/jobs", "/jobs/"), ("/", "", "/jobs"), ("/", "", "/jobs/")],
)
def test_the_place_itself_is_the_first_page(path: str, root: str, sent: str) -> None:
    assert below(path, root, sent)[:2] == ("/jobs", "/")


def test_a_mount_that_is_called_as_the_api_is_not_confused_with_it() -> None:
    assert below("/api/api/me", "/api", "/api/api/me")[:2] == ("/api", "/api/me")
    assert below("/api/me", "/api", "/api/api/me")[:2] == ("/api", "/api/me")


@pytest.mark.parametrize("path", ["/shop/jobs/api/me", "/jobs/api/me"], ids=["kept", "cut by the proxy"])
def test_behind_a_proxy_whose_prefix_the_framework_is_told_it_is_below_both(path: str) -> None:
    assert below(path, "/shop/jobs", path) == ("/shop/jobs", "/api/me", b"/api/me")


def test_a_slash_within_a_name_stays_one() -> None:
    sent = "/jobs/api/schedules/a%2Fb"
    assert below("/jobs/api/schedules/a/b", "/jobs", sent) == ("/jobs", "/api/schedules/a/b", b"/api/schedules/a%2Fb")
    assert below("/api/schedules/a/b/", "", sent) == ("/jobs", "/api/schedules/a/b", b"/api/schedules/a%2Fb")


@pytest.mark.parametrize(
    ("root", "prefix"),
    [("//evil.example", "/evil.example"), ('/"><script>', "/%22%3E%3Cscript%3E"), ("/größe", "/gr%C3%B6%C3%9Fe")],
)
def test_a_prefix_is_a_path_of_this_host_as_it_stands_in_a_url(root: str, prefix: str) -> None:
    assert below(f"{root}/runs", root)[:2] == (prefix, "/runs")
