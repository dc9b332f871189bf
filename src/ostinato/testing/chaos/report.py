"""What an ordeal, or many, came to: how much was checked, what was broken meanwhile, and what does not agree."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from ostinato.plurals import counted
from ostinato.testing.chaos.evidence import Evidence
from ostinato.testing.chaos.judge import SCHEDULED, Violation, judge

__all__ = ["PromiseBroken", "Report"]

_SHOWN = 20


class PromiseBroken(AssertionError):
    """The judge found something."""


@dataclass(slots=True)
class Report:
    """Printed, it says all of it in some lines."""

    due_times: int = 0
    """How many due times were compared with the ledger."""
    requests: int = 0
    """How many runs and messages that were asked for."""
    starts: int = 0
    """How many starts the tasks wrote down."""
    seconds: float = 0.0
    """How long it took, by the clock of the cluster."""
    faults: Counter[str] = field(default_factory=Counter)
    """What was broken, and how often."""
    violations: list[tuple[str, Violation]] = field(default_factory=list)
    """Where, such as the seed, and what."""

    @property
    def ok(self) -> bool:
        """Whether everything agrees."""
        return not self.violations

    def check(self) -> None:
        """Raise PromiseBroken if something does not agree."""
        if self.violations:
            raise PromiseBroken(str(self))

    def add(self, evidence: Evidence, where: str = "") -> None:
        """Judge this, too."""
        for row in evidence.rows:
            if row.trigger in SCHEDULED:
                self.due_times += row.count
        self.requests += len(evidence.asked_for)
        self.starts += len(evidence.executions)
        self.seconds += (evidence.ended_at - evidence.began_at) / 1e6
        self.faults.update(evidence.faults)
        self.violations += [(where, violation) for violation in judge(evidence)]

    def merge(self, other: Report) -> None:
        """Count that of another process, too."""
        self.due_times += other.due_times
        self.requests += other.requests
        self.starts += other.starts
        self.seconds += other.seconds
        self.faults.update(other.faults)
        self.violations += other.violations

    def __str__(self) -> str:
        faults = ", ".join(f"{name} {count}" for name, count in sorted(self.faults.items()))
        lines = [
            f"{self.due_times:,} due times and {self.requests:,} requests checked, {self.starts:,} starts, "
            f"in {self.seconds / 3_600:,.1f} hours",
            f"{counted(self.faults.total(), 'fault')}: {faults or 'none'}",
            counted(len(self.violations), "violation"),
        ]
        lines += [f"  {where}{': ' if where else ''}{violation}" for where, violation in self.violations[:_SHOWN]]
        if len(self.violations) > _SHOWN:
            lines.append(f"  and {len(self.violations) - _SHOWN} more")
        return "\n".join(lines)
