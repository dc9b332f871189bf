"""The table for people and `results.json` for the record."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.measure import Case, Row

__all__ = ["RESULTS", "show", "store"]

RESULTS = Path(__file__).parent / "results.json"
_VERDICTS = {True: "[green]pass[/]", False: "[bold red]FAIL[/]", None: ""}


def show(case: Case, rows: list[Row], told: set[str]) -> None:
    """Print a case as a table with its notes, each of them once; plain text when it is not a terminal."""
    console = Console(width=None if sys.stdout.isatty() else 150, highlight=False)
    table = Table(title=case.title, title_justify="left", title_style="bold", expand=False)
    for heading in ("what", "Ostinato", "against", "ratio", "must", ""):
        table.add_column(heading)
    for row in rows:
        table.add_row(row.what, row.ours, row.against, row.ratio, row.must, _VERDICTS[row.passed])
    console.print()
    console.print(table)
    for note in case.notes:
        if note not in told:
            told.add(note)
            console.print(f"  {note}", style="dim", markup=False)


def store(case: Case, rows: list[Row], machine: dict[str, Any], versions: dict[str, Any]) -> None:
    """Write a case into results.json beside the others; each carries its own date and machine."""
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    known[case.name] = {
        "title": case.title,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine,
        "versions": versions,
        "notes": list(case.notes),
        "rows": [
            {
                "what": row.what,
                "ostinato": row.ours,
                "against": row.against,
                "ratio": row.ratio,
                "must": row.must,
                "passed": row.passed,
            }
            for row in rows
        ],
        "medians": _rounded(case.medians),
        "values": _rounded(case.values),
    }
    RESULTS.write_text(json.dumps(known, indent=1, ensure_ascii=False) + "\n")


def _rounded(value: Any) -> Any:
    """Figures with as many digits as they deserve."""
    if isinstance(value, float):
        return float(f"{value:.5g}")
    if isinstance(value, dict):
        return {key: _rounded(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_rounded(part) for part in value]
    return value
