"""`python -m bench`: measure all cases, print the tables, write results.json; exit 1 where a must is not reached."""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bench.cases import CASES, NEEDS_SERVER
from bench.environments import OURS, PEERS, interpreter, versions
from bench.machine import describe
from bench.measure import Options, Place, measure
from bench.postgres import postgres
from bench.processes import ProgramFailed
from bench.profile import profile
from bench.report import RESULTS, show, store

OUR_PARTS = ("ostinato", "apsw", "psycopg", "msgspec")


def main() -> int:
    """Read the command line and do what it says."""
    given = _arguments()
    # A polite end runs every `finally`, and so ends what was started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    folder = Path(tempfile.mkdtemp(prefix="ostinato-bench-", dir=given.folder))
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        if given.what == "profile":
            return profile(folder, given.only or ["sqlite", "postgres"], given.n, given.rounds)
        return _run(given, folder, stack)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("what", nargs="?", choices=["run", "profile"], default="run", help="profile: cost of one run")
    cases = f"one of {', '.join(CASES)}; for profile, sqlite or postgres; may be repeated"
    parser.add_argument("--only", action="append", metavar="CASE", help=cases)
    parser.add_argument("--rounds", type=int, default=3, help="interleaved rounds, of which the median counts (3)")
    parser.add_argument("--n", type=int, default=10_000, help="runs of a throughput case (10000)")
    parser.add_argument("--seconds", type=int, default=20, help="how long lateness is measured (20)")
    parser.add_argument("--sizes", default="1000,10000,100000", help="numbers of idle schedules (1000,10000,100000)")
    parser.add_argument("--calm", type=float, default=10, help="seconds to wait at most for an idle machine (10)")
    parser.add_argument("--folder", help="where databases are made; must be on a real disk (the temporary folder)")
    given = parser.parse_args()
    known = {"sqlite", "postgres"} if given.what == "profile" else set(CASES)
    for name in given.only or ():
        if name not in known:
            parser.error(f"--only {name}: known are {', '.join(sorted(known))}")
    if given.rounds < 1 or given.n < 1_000 or given.seconds < 1:
        parser.error("at least 1 round, 1000 runs and 1 second")
    return given


def _run(given: argparse.Namespace, folder: Path, stack: ExitStack) -> int:
    options = Options(given.rounds, given.n, given.seconds, tuple(int(size) for size in given.sizes.split(",")))
    names = [name for name in CASES if not given.only or name in given.only]
    server = stack.enter_context(postgres(folder)) if NEEDS_SERVER.intersection(names) else None
    place = Place(folder, server)
    found: dict[str, Any] = {"ostinato": versions(OURS, OUR_PARTS)}
    for peer in PEERS:
        found[peer] = versions(interpreter(peer), tuple(part.split("=")[0].split("[")[0] for part in PEERS[peer]))
    if server is not None:
        found["postgres"] = server.settings()
    is_full = given.rounds >= 3 and (options.n, options.seconds, options.sizes) == (
        Options().n,
        Options().seconds,
        Options().sizes,
    )
    failed = 0
    told: set[str] = set()
    for name in names:
        machine = describe(folder)
        case = CASES[name](place, options)
        try:
            rows = measure(case, options.rounds, given.calm)
        except (ProgramFailed, AssertionError) as error:
            print(f"{name}: {error}", file=sys.stderr)
            failed += 1
            continue
        show(case, rows, told)
        failed += sum(row.passed is False for row in rows)
        if is_full:
            store(case, rows, machine, found)
    print()
    print(f"written to bench/{RESULTS.name}" if is_full else f"a quick run: bench/{RESULTS.name} is left as it is")
    print("every must is reached" if not failed else f"{failed} not reached")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
