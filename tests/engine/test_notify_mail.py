"""Channels that are mail: `mailto://` hands messages in at an SMTP server."""

from __future__ import annotations

import asyncio
import email
import email.message
import email.policy
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from aiosmtpd.handlers import Message as MessageHandler
from aiosmtpd.smtp import SMTP

from ostinato import Ostinato
from ostinato.models.notification import DeliveryState
from ostinato.testing import drain
from tests.engine.conftest import PATIENCE, MakeApp
from tests.engine.notify_fixtures import channel, deliveries, owe


class Mailbox(MessageHandler):
    """Keeps what is handed in."""

    def __init__(self) -> None:
        super().__init__()
        self.mails: list[email.message.Message] = []

    def handle_message(self, message: email.message.Message) -> None:
        self.mails.append(message)


class Refusing(Mailbox):
    async def handle_DATA(self, *_: object) -> str:  # noqa: N802  # as aiosmtpd calls it
        return "554 5.7.1 no such mailbox"


@contextmanager
def listening(mailbox: Mailbox) -> Iterator[int]:
    """A server on a free port of this machine: aiosmtpd's own controller cannot be asked for one."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    begin = loop.create_server(lambda: SMTP(mailbox, loop=loop), "127.0.0.1", 0)
    server = asyncio.run_coroutine_threadsafe(begin, loop).result(PATIENCE)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        loop.call_soon_threadsafe(server.close)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(PATIENCE)
        loop.close()


@pytest.fixture
def mailbox() -> Mailbox:
    return Mailbox()


@pytest.fixture
def port(mailbox: Mailbox) -> Iterator[int]:
    with listening(mailbox) as port:
        yield port


@pytest.fixture
def app(make_app: MakeApp) -> Ostinato:
    return make_app("sqlite://:memory:", notify_allow=("127.0.0.1",))


def mail(app: Ostinato, port: int) -> None:
    url = f"mailto://127.0.0.1:{port}?mode=insecure&from=jobs@example.org&to=ada@example.org"
    channel(app, url, "mail")


def test_a_message_is_handed_in_as_plain_text(app: Ostinato, mailbox: Mailbox, port: int) -> None:
    mail(app, port)
    owed = owe(app, "mail", reason="exit <1> & more")
    drain(app)
    (sent,) = deliveries(app)
    assert (sent.state, sent.error) == (DeliveryState.SENT, None)
    (got,) = mailbox.mails
    parsed = email.message_from_bytes(got.as_bytes(), policy=email.policy.default)
    assert parsed["Subject"] == "✗ nightly failed"
    assert parsed["To"] == "ada@example.org"
    plain = parsed.get_body(("plain",))
    assert plain is not None
    assert plain.get_content().split() == ["exit", "<1>", "&", "more", f"#{owed.key}"]


def test_a_mail_server_that_refuses_is_a_failed_try(app: Ostinato) -> None:
    with listening(Refusing()) as port:
        mail(app, port)
        owe(app, "mail")
        drain(app)
    (tried,) = deliveries(app)
    assert (tried.state, tried.attempts) == (DeliveryState.PENDING, 1)
    assert tried.error == 'Sending email to "***" failed.'
