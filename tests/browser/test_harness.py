"""The harness itself: what must fail a scenario does fail it, and nothing of it is left behind."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import psutil
import pytest

from tests.browser import scenario
from tests.browser.scenario import BOUNDED

pytestmark = BOUNDED

OpenPage = Callable[..., "SmallPage"]
GOOD = "<title>t</title><h1>Hello</h1>"


class SmallPage:
    """A place whose page is given."""

    def __init__(self, html: str) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(500 if self.path == "/broken" else 200)
                self.send_header("Content-Type", "text/html")
                self.send_header("Content-Security-Policy", "default-src 'self'; script-src 'self' 'nonce-x'")
                self.end_headers()
                self.wfile.write(html.encode())

            def log_message(self, format: str, *args: object) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self.asked: list[str] = []

    def login_link(self) -> str:
        return self.url

    def log(self) -> str:
        return "the log of the server"

    def cli(self, *argv: str) -> str:
        self.asked.append(" ".join(argv))
        return " ".join(argv)

    def touch(self, name: str) -> None:
        raise AssertionError(f"nobody asked for {name}")

    def start(self) -> None:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture(autouse=True)
def nothing_is_left(browser: str) -> Iterator[None]:
    before = programs()
    yield
    assert programs() == before, "neither a scenario nor a browser of its own"


def programs() -> list[int]:
    """The Node processes and the browsers that this process has started; what belongs to a browser comes and goes."""
    found = [child for child in psutil.Process().children(recursive=True) if child.name().startswith(("chrom", "node"))]
    return sorted(child.pid for child in found if not any(word.startswith("--type=") for word in child.cmdline()))


@pytest.fixture
def visit(play: Callable[..., None]) -> Callable[..., SmallPage]:
    """Play `any-page` against a page."""

    def visit(html: str, heading: str = "Hello") -> SmallPage:
        page = SmallPage(html)
        page.start()
        try:
            play("any-page", page, HEADING=heading)
        finally:
            page.stop()
        return page

    return visit


def test_a_good_page_passes_and_the_scenario_can_ask_the_test(visit: OpenPage) -> None:
    assert visit(GOOD).asked == ["echo hello"]


@pytest.mark.parametrize(
    ("html", "told"),
    [
        (GOOD + "<script nonce=x>console.error('something is odd')</script>", "error: something is odd"),
        (GOOD + "<script nonce=x>nobody.knows()</script>", "uncaught: ReferenceError: nobody is not defined"),
        (GOOD + "<script>inline()</script>", "violates the following Content Security Policy directive"),
        (GOOD + "<script nonce=x>fetch('/broken').then(() => 1)</script>", "500: GET"),
    ],
    ids=["an error in the console", "an uncaught error", "a refusal by its policy", "an answer of 500"],
)
def test_a_fault_of_the_page_fails_the_scenario(html: str, told: str, visit: OpenPage) -> None:
    with pytest.raises(pytest.fail.Exception) as failed:
        visit(html)
    assert told in str(failed.value)


def test_a_failure_tells_the_place_and_leaves_a_screenshot_and_the_console(tmp_path: Path, visit: OpenPage) -> None:
    with pytest.raises(pytest.fail.Exception) as failed:
        visit(GOOD + "<script nonce=x>console.log('so far so good')</script>", heading="Farewell")
    for told in ("the scenario 'any-page' failed", "Farewell", "log: so far so good", "the log of the server"):
        assert told in str(failed.value)
    assert (tmp_path / "browser" / "failure.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "browser" / "console.txt").read_text() == "log: so far so good"


def test_a_scenario_that_hangs_is_ended_and_the_next_one_is_played(
    visit: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(scenario, "_TIMEOUT", 1.5)
        with pytest.raises(pytest.fail.Exception, match=r"was not done within 1\.5 s"):
            visit(GOOD, heading="Farewell")
    assert visit(GOOD).asked == ["echo hello"]


def test_without_a_browser_a_scenario_fails_and_says_how_to_get_one(
    tmp_path: Path, visit: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scenario, "SCENARIOS", tmp_path)
    with pytest.raises(pytest.fail.Exception, match=r"there is no browser at .*`make test` installs it"):
        visit(GOOD)
