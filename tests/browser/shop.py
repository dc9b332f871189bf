"""The app of the screenshots: a small shop whose nightly life fills every page. Its tasks take their time, for show."""

from __future__ import annotations

import time

from ostinato import Ostinato, RunContext

app = Ostinato()

PRODUCTS = 48_000


def go_on_for(run: RunContext, seconds: float) -> None:
    """What a real task would do meanwhile."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and not run.cancelled:
        time.sleep(0.05)


@app.task("search.reindex", retry=0)
def reindex(run: RunContext) -> None:
    """Runs for as long as the pictures take, and is two thirds done."""
    run.log(f"reading {PRODUCTS:,} products from the catalogue")
    for step in range(1, 33):
        run.log(f"\x1b[32mok\x1b[0m    batch {step:02}: {PRODUCTS // 48:,} products, {step % 3} changed")
    run.log("\x1b[33mslow\x1b[0m  batch 33: the search engine answered after 2.4 s")
    run.count("indexed", 32_000)
    run.count("skipped", 212)
    run.progress(32_000, PRODUCTS, "batch 33 of 48")
    go_on_for(run, 600)


@app.task("stock.sync", retry=0)
def sync_stock(run: RunContext) -> dict[str, int]:
    run.log("4 warehouses, 12,480 articles")
    run.count("copied", 96)
    run.count("skipped", 12_384)
    return {"warehouses": 4}


@app.task("chat.reply", retry=0)
def reply(run: RunContext, payloads: list[str]) -> str:
    run.progress(1 + run.id % 3, 4, ["reading the thread", "asking the warehouse", "writing the answer"][run.id % 3])
    go_on_for(run, 600)
    return f"answered {len(payloads)} messages"


def do_little(run: RunContext) -> None:
    run.count("done", 12)


for name in ("books.close", "cache.warm", "carts.prune", "invoices.send", "mail.newsletter"):
    app.task(name)(do_little)
