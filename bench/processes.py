"""Starts measured programs and ends them, each by its own id, whatever happens."""

from __future__ import annotations

import json
import queue
import subprocess
import threading
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

__all__ = ["Program", "ProgramFailed", "ask"]

PROGRAMS = Path(__file__).parent / "programs"
END_SECONDS = 15.0


class ProgramFailed(RuntimeError):
    """A measured program ended, or said nothing in time; carries the end of what it wrote to stderr."""


class Program:
    """One measured program: its answers are lines of JSON, and it ends when its stdin closes."""

    def __init__(self, interpreter: Path, script: str, asked: dict[str, Any], log: Path) -> None:
        self.script = script
        self._log = log
        self._answers: queue.SimpleQueue[str] = queue.SimpleQueue()
        with log.open("a") as stderr:
            self._process = subprocess.Popen(
                [str(interpreter), str(PROGRAMS / f"{script}.py"), json.dumps(asked)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                cwd=log.parent,
            )
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._answers.put(line)
        self._answers.put("")

    def answer(self, seconds: float) -> dict[str, Any]:
        """Its next answer."""
        try:
            line = self._answers.get(timeout=seconds)
        except queue.Empty:
            raise ProgramFailed(f"{self.script} said nothing for {seconds:g} s{self._last_words()}") from None
        if not line:
            raise ProgramFailed(f"{self.script} ended without an answer{self._last_words()}")
        found: dict[str, Any] = json.loads(line)
        return found

    def _last_words(self) -> str:
        text = self._log.read_text().strip()
        return f":\n{text[-2_000:]}" if text else ""

    def end(self, *, at_once: bool = False) -> None:
        """Let it end by itself, unless `at_once`, then make it end."""
        process = self._process
        assert process.stdin is not None
        process.stdin.close()
        for stop in (process.terminate, process.kill):
            if not at_once:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(END_SECONDS)
                    return
            at_once = False
            stop()
        process.wait()

    def __enter__(self) -> Program:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end(at_once=error is not None)


def ask(interpreter: Path, script: str, asked: dict[str, Any], log: Path, seconds: float = 180) -> dict[str, Any]:
    """Run a program that gives one answer."""
    with Program(interpreter, script, asked, log) as program:
        return program.answer(seconds)
