"""The built page as a browser gets it: its files, index.html for every other address, and what is not built."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ostinato.api.page import Page
from tests.doors.web import Web, web_on

SCRIPT = "console.log('hello');" * 200


@pytest.fixture
def web(tmp_path: Path) -> Iterator[Web]:
    folder = tmp_path / "page"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text("<!doctype html><title>Ostinato</title>", encoding="utf-8")
    (folder / "icon.svg").write_text("<svg/>", encoding="utf-8")
    (folder / "assets" / "index-abc123.js").write_text(SCRIPT, encoding="utf-8")
    (tmp_path / "secret.txt").write_text("swordfish", encoding="utf-8")
    with web_on() as web:
        web.app.router.default = Page(folder)
        yield web


@pytest.mark.parametrize("path", ["/", "/schedules", "/schedules/nightly%20report", "/runs/12?tab=log", "/login"])
def test_every_address_of_the_page_is_its_one_document(web: Web, path: str) -> None:
    answer = web.anybody().get(path)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["cache-control"] == "no-cache"
    assert "<title>Ostinato</title>" in answer.text


def test_files_with_a_hash_in_their_name_are_kept_for_ever(web: Web) -> None:
    answer = web.anybody().get("/assets/index-abc123.js")
    assert answer.text == SCRIPT
    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert answer.headers["content-type"].startswith("text/javascript")
    assert answer.headers["content-encoding"] == "gzip"
    assert int(answer.headers["content-length"]) < len(SCRIPT)
    plain = web.anybody().get("/assets/index-abc123.js", headers={"Accept-Encoding": "identity"})
    assert plain.text == SCRIPT
    assert "content-encoding" not in plain.headers
    assert web.anybody().get("/icon.svg").headers["cache-control"] == "no-cache"


def test_a_way_through_the_assets_keeps_nothing_for_ever(web: Web) -> None:
    assert b"<title>Ostinato</title>" in web.run(_raw(web, "/assets/%2e%2e/index.html"))
    headers = web.run(_headers(web, "/assets/%2e%2e/index.html"))
    assert headers[b"cache-control"] == b"no-cache"
    assert b"immutable" in web.run(_headers(web, "/%2e/assets/index-abc123.js"))[b"cache-control"]


def test_a_script_of_another_build_is_not_found(web: Web) -> None:
    assert web.anybody().get("/assets/index-old.js").status_code == 404


def test_what_has_not_changed_is_not_sent_again(web: Web) -> None:
    tag = web.anybody().get("/").headers["etag"]
    answer = web.anybody().get("/", headers={"If-None-Match": tag})
    assert (answer.status_code, answer.content) == (304, b"")


def test_a_page_that_was_built_anew_is_served_anew(web: Web, tmp_path: Path) -> None:
    assert "Ostinato" in web.anybody().get("/").text
    (tmp_path / "page" / "index.html").write_text("<!doctype html>new", encoding="utf-8")
    assert web.anybody().get("/").text == "<!doctype html>new"


@pytest.mark.parametrize(
    "path", ["/../secret.txt", "/%2e%2e/secret.txt", "/assets/../../secret.txt", "/assets/%2e%2e%2f%2e%2e%2fsecret.txt"]
)
def test_nothing_beside_the_page_is_served(web: Web, path: str) -> None:
    answer = web.run(_raw(web, path))
    assert b"swordfish" not in answer


async def _raw(web: Web, path: str) -> bytes:
    """The answer to a path that no client may tidy up."""
    return b"".join([message.get("body", b"") for message in await _sent(web, path)])


async def _headers(web: Web, path: str) -> dict[bytes, bytes]:
    return dict((await _sent(web, path))[0]["headers"])


async def _sent(web: Web, path: str) -> list[dict[str, Any]]:
    from urllib.parse import unquote

    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: object) -> None:
        assert isinstance(message, dict)
        sent.append(message)

    scope = {
        "type": "http",
        "method": "GET",
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "scheme": "http",
        "headers": [(b"host", b"localhost")],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 8321),
    }
    await web.app(scope, receive, send)
    return sent


@pytest.mark.parametrize("path", ["/api", "/api/x", "/healthz/x", "/readyz/x", "/metrics/x"])
def test_the_page_does_not_answer_for_the_api(web: Web, path: str) -> None:
    answer = web.script("viewer").get(path)
    assert (answer.status_code, answer.headers["content-type"]) == (404, "application/problem+json")


def test_head_answers_as_get_without_a_body(web: Web) -> None:
    answer = web.anybody().send("HEAD", "/")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")


def test_a_page_that_is_not_built_says_how_to_build_it(web: Web, tmp_path: Path) -> None:
    web.app.router.default = Page(tmp_path / "nothing")
    answer = web.anybody().get("/")
    assert "make page" in answer.text
    assert answer.headers["content-type"].startswith("text/plain")
