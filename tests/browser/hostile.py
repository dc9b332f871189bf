"""An app whose every text is an attack on the page that shows it."""

from __future__ import annotations

from typing import Any

from ostinato import Abort, Ostinato, RunContext

app = Ostinato()

MARKUP = "<script>window.hacked=1</script><img src=x onerror='window.hacked=1'>"
CONTROLS = "\x1b]8;;javascript:window.hacked=1\x07link\x1b]8;;\x07 \x1b[31mred\x1b[0m \u202etfel\u2066"
LINK = "javascript:window.hacked=1"


@app.task("attack", retry=0)
def attack(run: RunContext, payloads: Any = None) -> None:
    """Prints, counts, reports and fails with markup."""
    run.log(f"output {MARKUP}")
    run.log(f"output {CONTROLS}")
    run.log(f"output {LINK}")
    run.count(f"total {MARKUP}"[:100], 3)
    run.progress(1, 2, f"progress {MARKUP}")
    raise Abort(f"error {MARKUP} {CONTROLS} {LINK}")


ENDLESS = "x" * 3_000


@app.task("endless", retry={"max": 1, "base": 0.0})
def endless(run: RunContext, payloads: Any = None) -> None:
    """Says words that no line can hold."""
    run.log(ENDLESS)
    run.count(ENDLESS[:100], 3)
    raise ValueError(ENDLESS)


@app.task("answer", retry=0)
def answer(run: RunContext, payloads: Any = None) -> dict[str, str]:
    return {f"result {MARKUP}": LINK}
