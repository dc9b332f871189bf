"""Break a cluster on purpose, and have it judged from outside.

    from ostinato.testing import chaos

    report = chaos.run("jobs:app", minutes=5)
    print(report)
    report.check()

`run` starts an app of yours in several processes, on a database of its own, and kills, stops and drains them, and keeps
them from the database. `simulate` plays whole clusters in this thread, on a clock of their own. Either way the tasks
write down what they saw, and a judge compares that, and due times that it counted itself, with the ledger.
"""

from __future__ import annotations

from ostinato.testing.chaos.judge import Violation, judge
from ostinato.testing.chaos.ordeal import FAULTS, run
from ostinato.testing.chaos.report import PromiseBroken, Report
from ostinato.testing.chaos.simulation import DENSE, SPARSE, Simulation, simulate
from ostinato.testing.chaos.workload import Pace

__all__ = [
    "DENSE",
    "FAULTS",
    "SPARSE",
    "Pace",
    "PromiseBroken",
    "Report",
    "Simulation",
    "Violation",
    "judge",
    "run",
    "simulate",
]
