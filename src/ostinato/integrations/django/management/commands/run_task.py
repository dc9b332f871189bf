"""`manage.py run_task NAME`: run a task once, here and now, with its output and its result."""

from __future__ import annotations

import sys
from typing import Any

import msgspec
from django.core.management.base import BaseCommand, CommandError, CommandParser

from ostinato import Function
from ostinato.cli.main import run
from ostinato.errors import OstinatoError
from ostinato.integrations.django import jobs
from ostinato.integrations.django.management.commands.ostinato import CALLED
from ostinato.service.answers import run_answer

__all__ = ["Command"]


class Command(BaseCommand):
    """`ostinato exec --task` by the words of Django."""

    help = "Run a task once, in this process. It is recorded like every run; the exit code is 0 if it succeeded."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="The task, as list_tasks shows it.")
        parser.add_argument(
            "--args",
            dest="given",
            metavar="JSON",
            default="[]",
            help="Its arguments: a JSON list, or an object of named ones.",
        )
        parser.add_argument(
            "--json", dest="as_json", action="store_true", help="Print JSON: lines of output, then the run."
        )

    def handle(self, *, name: str, given: str = "[]", as_json: bool = False, **_: Any) -> None:
        args, kwargs = _arguments(given)
        if self._called_from_command_line:  # where Ctrl-C cancels it
            flag = "--args" if isinstance(msgspec.json.decode(given), list) else "--kwargs"
            sys.exit(run(["exec", "--task", name, flag, given, *(["--json"] if as_json else [])], jobs, CALLED))
        self._run(Function(name, args, kwargs), as_json)

    def _run(self, work: Function, as_json: bool) -> None:
        """By call_command, whose caller may want the output."""
        try:
            jobs.registry.task(work.task)
            done = jobs.execute(work, retry=0)
        except OstinatoError as error:
            raise CommandError(str(error)) from error
        if not as_json:
            self.stdout.write(jobs.runs.output(done.id), ending="")
        else:
            self.stdout.write(msgspec.json.encode(run_answer(done, jobs.settings.tz)).decode())
        if done.state != "succeeded":
            raise CommandError(f"run {done.id} of task {work.task!r} {done.state}: {done.reason}")
        if not as_json and done.result is not None:
            self.stdout.write(msgspec.json.encode(done.result).decode())


def _arguments(text: str) -> tuple[list[Any], dict[str, Any]]:
    try:
        value = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise CommandError(f"--args is not JSON: {error}; give a list such as '[1, \"two\"]'", returncode=2) from None
    if not isinstance(value, list | dict):
        raise CommandError("--args must be a JSON list of arguments, or an object of named ones", returncode=2)
    return (value, {}) if isinstance(value, list) else ([], value)
