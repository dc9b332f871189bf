"""`manage.py ostinato …`: the whole command line, on the project's app and settings."""

from __future__ import annotations

import sys
from argparse import REMAINDER
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from ostinato.cli.main import run
from ostinato.integrations.django import jobs

__all__ = ["CALLED", "Command"]

CALLED = "manage.py ostinato"

_WITH_VALUE = frozenset({"--settings", "--pythonpath", "--verbosity"})
_FLAGS = frozenset({"--traceback", "--no-color", "--force-color", "--skip-checks"})
"""The options of every command of Django that are none of ours."""


class Command(BaseCommand):
    """Hands every word on."""

    help = "The command line of Ostinato, with this project's tasks and settings: manage.py ostinato --help"

    def run_from_argv(self, argv: list[str]) -> None:
        sys.exit(run(_without_djangos(argv[2:]), jobs, CALLED))

    def add_arguments(self, parser: CommandParser) -> None:
        # By the name that Django hands on as positional; the rest, so that flags are ours.
        parser.add_argument("args", metavar="words", nargs=REMAINDER, help="The command, such as: run ls")

    def handle(self, *words: str, **_: Any) -> None:
        """By call_command("ostinato", "run", "ls"), whose caller may want the output."""
        with redirect_stdout(self.stdout._out), redirect_stderr(self.stderr._out):
            code = run(words, jobs, CALLED)
        if code:
            raise CommandError(f"ostinato {' '.join(words)} ended with {code}", returncode=code)


def _without_djangos(words: Sequence[str]) -> list[str]:
    """Without what `manage.py` has read itself, of every command; a command behind `--` is left as it is."""
    end = words.index("--") if "--" in words else len(words)
    kept, given = [], iter(words[:end])
    for word in given:
        if word in _WITH_VALUE:
            next(given, None)
        elif word not in _FLAGS and word.partition("=")[0] not in _WITH_VALUE:
            kept.append(word)
    return [*kept, *words[end:]]
