"""How soon an interrupting message reaches a running agent, on its own node and from another process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from bench.environments import OURS
from bench.measure import Case, Figures, Options, Place, Row
from bench.processes import Program, ask

__all__ = ["interrupt"]

COUNT = 50
WARM_UP = 5
MUST_MS = {"the same node": 100.0, "another process": 1_000.0}
KINDS = ("sqlite", "postgres")
BARE = "bare kill"
NOTES = (
    f"A stand-in for an agent has a prompt in a session, and a message with mode=interrupt and debounce=0 is sent to "
    f"it, {COUNT} times after {WARM_UP} to warm up. The clock runs from the call of send until the process has its "
    "SIGTERM, which it waits for in sigwait; both read the monotonic clock of the machine.",
    "Ostinato: an engine that sends itself, and a process without an engine that sends to the one beside it. The "
    "message is committed, the engine notices the change and ends the process group; each prompt is recorded as "
    "superseded.",
    "Bare kill: os.kill by who started the process, nothing kept.",
)


def interrupt(place: Place, _: Options) -> Case:
    """Ours on both databases from near and far, and a kill."""
    asked = {"n": COUNT, "warm_up": WARM_UP}

    def same(kind: str) -> Figures:
        with place.fresh_database(kind) as db:
            return _checked(ask(OURS, "interrupt_ostinato", {**asked, "role": "both", "db": db}, place.log))

    def another(kind: str) -> Figures:
        with (
            place.fresh_database(kind) as db,
            Program(OURS, "interrupt_ostinato", {"role": "engine", "db": db}, place.log) as engine,
        ):
            engine.answer(60)
            return _checked(ask(OURS, "interrupt_ostinato", {**asked, "role": "sender", "db": db}, place.log))

    contenders: dict[str, Callable[[], Figures]] = {BARE: lambda: ask(OURS, "interrupt_kill", asked, place.log)}
    for kind in KINDS:
        contenders[f"ostinato {kind}, the same node"] = partial(same, kind)
        contenders[f"ostinato {kind}, another process"] = partial(another, kind)
    return Case("interrupt", "how soon an interrupt reaches a running agent", contenders, _rows, NOTES)


def _checked(figures: Figures) -> Figures:
    if figures["superseded"] != figures["interrupts"]:
        raise AssertionError(f"{figures['superseded']} of {figures['interrupts']} are recorded as superseded")
    return figures


def _rows(medians: Mapping[str, Figures]) -> list[Row]:
    bare = medians[BARE]
    rows = []
    for name, figures in medians.items():
        if name == BARE:
            continue
        kind, origin = name.removeprefix("ostinato ").split(", ")
        p99, must = figures["p99_ms"], MUST_MS[origin]
        rows.append(
            Row(
                f"{kind}: an interrupt from {origin}",
                f"p50 {figures['p50_ms']:.1f}, p99 {p99:.1f}, max {figures['max_ms']:.1f} ms",
                f"{BARE} p50 {bare['p50_ms']:.2f}, p99 {bare['p99_ms']:.2f} ms",
                must=f"p99 ≤ {must:g} ms",
                passed=p99 <= must,
            )
        )
    return rows
