"""For tests of your own: a clock that you move, and an engine that does at once what is due.

    def test_it_cleans_up_at_three(ostinato_app, fake_clock):
        cleaned = []
        ostinato_app.task("cleanup", schedule="daily 03:00")(lambda: cleaned.append(fake_clock.now_utc()))

        simulate(ostinato_app, until="2026-01-03T00:00:00Z")

        assert [moment.hour for moment in cleaned] == [3, 3]

`FakeClock` is the clock, `drain` does what is due now, `simulate` goes from due time to due time, `settle` waits for a
started engine, `rehearse` puts an app that exists on a clock and a database for the test. The fixtures `fake_clock`
and `ostinato_app` are there by themselves. Nothing here sleeps. `store_suite` has tests for a store of your own, and
`chaos` plays a whole cluster under faults.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ostinato.testing.driving import adrain, asettle, asimulate, drain, rehearse, settle, simulate
    from ostinato.testing.fake_clock import FakeClock

__all__ = ["FakeClock", "adrain", "asettle", "asimulate", "drain", "rehearse", "settle", "simulate"]


def __getattr__(name: str) -> Any:
    # Lazily, because every user's pytest imports this package on its way to the plugin.
    if name not in __all__:
        raise AttributeError(f"module 'ostinato.testing' has no attribute {name!r}")
    module = "ostinato.testing.fake_clock" if name == "FakeClock" else "ostinato.testing.driving"
    return getattr(import_module(module), name)
