"""What apprise brings into memory: over a hundred plugins, which the garbage collector is not to look at for ever."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import asyncio, gc, sys
from ostinato.execution.executors.http.addresses import AllowedHosts
from ostinato.notifications.apprise_channel import AppriseChannel

if sys.argv[1] == "settled":
    gc.freeze()
before = gc.get_freeze_count()
asyncio.run(AppriseChannel(AllowedHosts(["127.0.0.1"])).check("json://127.0.0.1:9/"))
print(before, gc.get_freeze_count())
"""


@pytest.mark.parametrize("process", ["settled", "unsettled"])
def test_the_plugins_of_apprise_are_frozen_where_the_process_has_frozen_what_it_had(process: str) -> None:
    told = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM, process],
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    before, after = map(int, told.stdout.split())
    if process == "settled":
        assert after > before + 10_000
    else:
        assert before == after == 0, "an app that froze nothing is left as it is"
