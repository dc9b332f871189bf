"""What a message was answered, as lines: what an agent said in the end, or what a task returned."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ostinato.cli.output import OutputPrinter

if TYPE_CHECKING:
    from ostinato.models.run import Run

__all__ = ["answer_lines", "print_answer"]


def answer_lines(run: Run) -> list[str]:
    """The answer of a run; nothing, if there is none."""
    from ostinato.models.work import Agent

    answer = run.result
    if isinstance(run.work, Agent):
        answer = answer.get("text") if isinstance(answer, dict) else None
    if answer is None or answer == "":
        return []
    text = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
    return text.rstrip("\n").split("\n")


def print_answer(run: Run, lines: Iterable[str]) -> None:
    """Print it as the output of work is printed: raw into a pipe, harmless for a terminal."""
    from ostinato.models.output import OutputLine

    printed = OutputPrinter(run.id, as_json=False)
    for line in lines:
        printed(OutputLine(None, None, line))
