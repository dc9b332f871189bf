"""What it costs that people are to be told: no-op runs with a rule for everything that goes wrong, and without one."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from bench.environments import OURS
from bench.measure import Case, Figures, Options, Place, Row
from bench.processes import Program, ask

__all__ = ["telling"]

MUST = 0.98
RULES = {
    "with rules": "trouble",
    "with a rule elsewhere": "elsewhere",
    "after a message": "here",
    "without": None,
}
"""What is set, by the name of the contender."""
NOTES = (
    "Process layout and clock as for `sqlite-async`; the worker freezes what it has at its start, as `ostinato worker` "
    "does. With rules: a channel, and a rule that tells it of everything that fails, breaks, is missed, is late or "
    "recovers; nothing of that happens. Elsewhere: a rule that tells it of every success of a project to which none of "
    "the runs belongs. Another process adds them before the worker starts. After a message: as with rules, and the "
    "worker has apprise and its plugins in memory. Without: neither channel nor rule.",
)


def telling(place: Place, options: Options) -> Case:
    """With and without a rule, in turn, on both databases; four times as many runs as elsewhere, for a fine margin."""
    n = 4 * options.n

    def run(kind: str, rules: str | None) -> Callable[[], Figures]:
        def measured() -> Figures:
            with place.fresh_database(kind) as db:
                asked = {"db": db, "kind": "async", "lane": 100, "n": n, "warm_up": 500}
                asked |= {"rules": rules, "settled": True}
                if rules not in (None, "here"):
                    ask(OURS, "noop_ostinato", {**asked, "role": "rules"}, place.log)
                with Program(OURS, "noop_ostinato", {**asked, "role": "worker"}, place.log) as worker:
                    worker.answer(60)
                    return ask(OURS, "noop_ostinato", {**asked, "role": "producer"}, place.log)

        return measured

    contenders = {f"{kind} {how}": run(kind, rules) for kind in ("sqlite", "postgres") for how, rules in RULES.items()}
    title = f"{n:,} no-op async runs, with a rule that has nothing to tell and without one"
    return Case("telling", title, contenders, _rows, NOTES)


def _rows(medians: Mapping[str, Figures]) -> list[Row]:
    found = []
    for kind in ("sqlite", "postgres"):
        without = medians[f"{kind} without"]["rate"]
        for how in [name for name, rules in RULES.items() if rules is not None]:
            rate = medians[f"{kind} {how}"]["rate"]
            found.append(
                Row(
                    f"runs per second, {kind} {how}",
                    f"{rate:,.0f}",
                    f"without {without:,.0f}",
                    f"{rate / without:.3f}×",
                    f"≥ {MUST:g}×",
                    rate / without >= MUST,
                )
            )
    return found
