"""Who is on the list, and how often those are noted who are not."""

from __future__ import annotations

import pytest

from ostinato.integrations.telegram.allow_list import MOST_AN_HOUR, AllowList
from ostinato.integrations.telegram.incoming import Incoming, IncomingKind
from ostinato.models.access import AuditFilter, Role
from ostinato.service.audit import AuditService
from ostinato.testing import FakeClock
from ostinato.wiring import open_store

CHATS = {42: Role.ADMIN, 43: Role.VIEWER, -1: Role.OPERATOR}


def incoming(chat: int, user: int | None = None) -> Incoming:
    return Incoming(1, IncomingKind.MESSAGE, chat, chat > 0, chat if user is None else user, "@x", 1, "/status")


@pytest.mark.parametrize(
    ("chat", "user", "role"),
    [
        (42, 42, Role.ADMIN),
        (43, 43, Role.VIEWER),
        (-1, 7, Role.OPERATOR),
        (-1, 42, Role.ADMIN),
        (-1, 43, Role.VIEWER),
        (-1, -1, Role.OPERATOR),
        (7, 7, None),
        (-2, 42, None),
        (42, 7, None),
        (7, 42, None),
    ],
)
def test_the_chat_must_be_on_the_list_and_a_person_on_it_has_that_role(
    fake_clock: FakeClock, chat: int, user: int, role: Role | None
) -> None:
    audit = AuditService(open_store("sqlite://:memory:"), fake_clock)
    found = AllowList(CHATS, audit, fake_clock).caller_of(incoming(chat, user))
    assert (found and found.role) == role


async def test_a_stranger_is_noted_once_an_hour_and_not_all_of_many(fake_clock: FakeClock) -> None:
    store = open_store("sqlite://:memory:")
    await store.open()
    allowed = AllowList(CHATS, AuditService(store, fake_clock), fake_clock)

    async def noted() -> list[str]:
        return [entry.who for entry in await store.access.list_audit(AuditFilter(verb="denied", limit=500))]

    try:
        for _ in range(3):
            await allowed.note_stranger(incoming(7))
        fake_clock.advance("59m")
        await allowed.note_stranger(incoming(7))
        assert await noted() == ["telegram:7"]
        fake_clock.advance("1m")
        await allowed.note_stranger(incoming(7))
        assert await noted() == ["telegram:7", "telegram:7"]
        for user in range(100, 300):
            await allowed.note_stranger(incoming(user))
        found = await noted()
        assert (found[0], len(found)) == ("unknown", 2 + MOST_AN_HOUR)
    finally:
        await store.close()
