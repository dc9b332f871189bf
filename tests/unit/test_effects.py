"""What a request has written: noted before whoever waits for the write goes on."""

from __future__ import annotations

import asyncio

import pytest

from ostinato.errors import OutcomeUnknown, StoreUnavailable
from ostinato.models.write_tracking import may_have_written, noted, tracking_writes


async def _write(error: BaseException | None = None) -> bool:
    """A write that ends so; answers whether it has writes, as whoever waited for it sees them."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[int] = loop.create_future()
    if isinstance(error, asyncio.CancelledError):
        loop.call_soon(future.cancel)
    elif error is not None:
        loop.call_soon(future.set_exception, error)
    else:
        loop.call_soon(future.set_result, 1)
    try:
        await noted(future)
    except BaseException:
        return may_have_written()
    return may_have_written()


async def _request(error: BaseException | None) -> bool:
    with tracking_writes():
        return await _write(error)


@pytest.mark.parametrize(
    ("error", "is_possible"),
    [
        (None, True),
        (OutcomeUnknown("the line went dead"), True),
        (asyncio.CancelledError(), True),
        (StoreUnavailable("the disk is full"), False),
        (RuntimeError("a bug"), False),
    ],
)
def test_only_what_was_rolled_back_has_no_effect(error: BaseException | None, is_possible: bool) -> None:
    assert asyncio.run(_request(error)) is is_possible


def test_what_another_task_of_the_request_writes_counts_and_what_another_request_writes_does_not() -> None:
    async def request(error: Exception | None) -> bool:
        with tracking_writes() as writes:
            await asyncio.create_task(_write(error))
            return writes.may_have_happened

    async def together() -> tuple[bool, bool, bool]:
        refused = StoreUnavailable("the disk is full")
        return await asyncio.gather(request(None), request(refused), request(None))

    assert tuple(asyncio.run(together())) == (True, False, True)


def test_outside_of_a_request_nothing_is_noted() -> None:
    assert not asyncio.run(_write())
