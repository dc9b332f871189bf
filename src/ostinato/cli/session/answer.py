"""What a message was answered, as lines: what an agent said in the end, or what a task returned."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ostinato.cli.output import OutputPrinter

if TYPE_CHECKING:
    from ostinato.models.run import Run

__all__ = ["answer_lines", "print_answer"]


def answer_lines(run: Run) -> list[str]:
    """The answer of a run; nothing, if there is none."""
    from ostinato.models.work import answer_text

    text = answer_text(run.work, run.result)
    return text.split("\n") if text else []


def print_answer(run: Run, lines: Iterable[str]) -> None:
    """Print it as the output of work is printed: raw into a pipe, harmless for a terminal."""
    from ostinato.models.output import OutputLine

    printed = OutputPrinter(run.id, as_json=False)
    for line in lines:
        printed(OutputLine(None, None, line))
