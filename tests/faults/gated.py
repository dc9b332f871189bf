"""The tasks of a worker that is stopped while its database is away; see test_outages.py.

Each execution appends `began KEY` to the file `executions` of the folder, waits for the file `gate`, and appends
`ended KEY`.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from ostinato import Ostinato, RunContext

app = Ostinato(name="gated")
LOG = os.open("executions", os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)


@app.task("gated")
def gated(run: RunContext) -> str:
    os.write(LOG, f"began {run.key}\n".encode())
    while not Path("gate").exists():
        time.sleep(0.02)
    os.write(LOG, f"ended {run.key}\n".encode())
    return "done"
