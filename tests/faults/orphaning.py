"""An app whose task leaves a process behind, as a careless library does."""

from __future__ import annotations

import subprocess

from ostinato import Ostinato

app = Ostinato("sqlite://:memory:")


@app.task("leave", schedule="every 1s", retry=0)
def leave() -> None:
    subprocess.Popen(["sleep", "300"], start_new_session=True)
