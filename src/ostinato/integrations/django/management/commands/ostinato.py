"""`manage.py ostinato …`: the whole command line, on the project's app and settings."""

from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from ostinato.cli.main import run
from ostinato.integrations.django import jobs

__all__ = ["Command"]


class Command(BaseCommand):
    """Hands every word on."""

    help = "The command line of Ostinato, with this project's tasks and settings: manage.py ostinato --help"

    def run_from_argv(self, argv: list[str]) -> None:
        sys.exit(run(argv[2:], jobs))

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("words", nargs="*", help="The command, such as: run ls")

    def handle(self, *words: str, **_: Any) -> None:
        """By call_command("ostinato", "run", "ls")."""
        code = run(words, jobs)
        if code:
            raise CommandError(f"ostinato {' '.join(words)} ended with {code}", returncode=code)
