"""`ostinato web`: API and page without an engine, on a database whose engines run elsewhere."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from ostinato.cli.console import emit_json_line
from ostinato.cli.limits import raise_descriptor_limit
from ostinato.cli.log_setup import chosen_log, start_log
from ostinato.cli.open_database import load_app
from ostinato.cli.options import NO_COMMON, NO_LOG, NO_TLS, Common, ListenHost, ListenPort, LogFlags, TlsFlags
from ostinato.cli.restart import Launch

if TYPE_CHECKING:
    from collections.abc import Callable

    from ostinato.app import Ostinato
    from ostinato.cli.systemd import ServiceManager

__all__ = ["serve_page", "web"]


def web(
    *,
    host: ListenHost = None,
    port: ListenPort = None,
    tls: TlsFlags = NO_TLS,
    log: LogFlags = NO_LOG,
    common: Common = NO_COMMON,
) -> int:
    """Serve the API and the page without an engine.

    Ctrl-C ends it, a second Ctrl-C ends it at once; SIGUSR1 ends it and starts this process anew.
    """
    import asyncio

    from ostinato.cli.systemd import ServiceManager

    launch = Launch.of_this_process()
    log = chosen_log(log)
    talk = start_log(log, brief=True)
    manager = ServiceManager.take()
    # Before there is a loop: what the user's module does at import may want one of its own.
    app = load_app(common, host=host, port=port, tls=tls, log=log)
    if launch.is_trial:
        launch.end_trial(app.settings, page=True)
    raise_descriptor_limit()
    with closing(manager):
        return asyncio.run(serve_page(app, talk, manager, launch, as_json=common.json))


async def serve_page(
    app: Ostinato,
    talk: Callable[[str], None],
    manager: ServiceManager,
    launch: Launch,
    *,
    why: str = "'ostinato worker' starts one",
    as_json: bool,
) -> int:
    """Serve until a signal comes; `why` says why no engine is here."""
    from ostinato.cli.server import serving
    from ostinato.cli.serving import settle
    from ostinato.cli.signals import PageSignals
    from ostinato.config import without_password
    from ostinato.wiring import open_container

    container = await open_container(app.settings, app.clock, app.registry)
    try:
        signals = PageSignals(talk, launch)
        async with serving(container, talk) as address, manager.watched():
            if as_json:
                emit_json_line({"address": address})
            talk(f"database   {without_password(app.settings.db)}, no engine here: {why}")
            talk("Ctrl-C to stop")
            settle()
            manager.ready(f"serving {address}, without an engine")
            await signals.first.wait()
            if signals.restarts:
                manager.reloading()
                manager.starting_anew()
            else:
                manager.stopping(0)
    finally:
        await container.close()
    if signals.settle_restart():
        talk("starting anew")
        launch.repeat()
    talk("stopped")
    return 0
