"""Sessions, as the other layers ask for them: a part of base.py, answered in each sessions.py."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ostinato.clock import Micros
from ostinato.models.event import Event
from ostinato.models.ids import RunId
from ostinato.models.run import ClaimedRun
from ostinato.models.session import Message, Sent, Session, Stopped

__all__ = ["SessionStore"]


class SessionStore(Protocol):
    """Sessions: durable mailboxes. Whatever changes one sees what others did to it before."""

    async def send(self, messages: Sequence[Message], now: Micros) -> list[Sent]:
        """Put messages into their sessions, in order, in one transaction; the answers are in the same order.

        In this order for each: one sent before its session's cutoff is recorded as skipped (stale). The session
        remembers its settings. A message that debounces joins the newest queued run of its session if that is an
        open burst of the same task and mode; its own row is then skipped. Mode interrupt ends all that is queued as
        superseded, and tells what runs to stop. A full queue loses its oldest run that has never started, or refuses
        the message. Then the run is inserted, and turns are given.
        """
        ...

    async def stop(self, key: str, *, everything: bool, now: Micros, by: str | None = None) -> Stopped:
        """Cancel the oldest run that has its turn; or everything, with a cutoff for what is still on its way. `by` says
        which person wants it.

        To stop a session that nobody has used does nothing, unless it is everything: the cutoff stays."""
        ...

    async def hold_back(self, claimed: Sequence[ClaimedRun], now: Micros) -> list[RunId]:
        """A node has claimed these runs and not started them, and their sessions are full: from now on those go one at
        a time. Answers which of the runs may start.

        In a session in which something else is under way none of them may, else the oldest run that has its turn keeps
        it. The others go back to where they wait for their turn, as if they had not been claimed; what somebody
        wanted to stop meanwhile ends. A run whose token no longer holds may not start either.
        """
        ...

    async def unthrottle(self, sessions: Sequence[str]) -> None:
        """These sessions are full no longer: where one was, as many go at a time as it allows."""
        ...

    async def get_session(self, key: str) -> Session | None: ...

    async def list_sessions(self, search: str | None, busy: bool, limit: int) -> list[Session]:
        """Sessions, the latest message first; only those with something queued or running, if `busy`."""
        ...

    async def list_events(self, session: str | None, after: int, limit: int, *, newest: bool = False) -> list[Event]:
        """Events with a greater id than `after`, of one session or of all: the first `limit` of them, or the newest;
        oldest first."""
        ...
