"""Signals are heard once each, on a thread, beside whoever else handles signals."""

from __future__ import annotations

import asyncio
import ctypes
import io
import os
import signal
import threading
from collections.abc import Iterator
from functools import partial
from queue import SimpleQueue
from types import FrameType
from typing import Any

import pytest

from ostinato.signal_reader import SignalReader, say_last, signal_reader

ONE, TWO, OTHER = signal.SIGUSR1, signal.SIGUSR2, signal.SIGWINCH


class HeardSignals:
    """What the reader has called back with, in order."""

    def __init__(self) -> None:
        self._numbers: SimpleQueue[int] = SimpleQueue()
        self.threads: set[str] = set()

    def __call__(self, number: int) -> None:
        self.threads.add(threading.current_thread().name)
        self._numbers.put(number)

    def next(self) -> int:
        return self._numbers.get(timeout=60)

    def is_empty(self) -> bool:
        return self._numbers.empty()


@pytest.fixture
def reader() -> Iterator[SignalReader]:
    """The one of this process, with no listener: an app that another thread stopped, in a test before, left its own."""
    left = signal_reader()
    left.leave(tuple(map(signal.Signals, left._listeners)))
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (ONE, TWO, OTHER)}
    yield left
    left.leave((ONE, TWO))
    signal.signal(ONE, signal.SIG_IGN)
    assert {signal.getsignal(number) for number in (ONE, TWO)} == {signal.SIG_IGN}
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def heard(reader: SignalReader) -> HeardSignals:
    heard = HeardSignals()
    reader.listen((ONE, TWO), heard)
    return heard


def test_each_signal_is_heard_once_and_in_order(heard: HeardSignals) -> None:
    for number in (ONE, TWO, ONE, ONE):
        signal.raise_signal(number)
        assert heard.next() == number
    assert heard.threads == {"ostinato-signals"}
    assert heard.is_empty()


def test_an_answer_that_comes_too_late_is_not_taken_for_the_next(
    reader: SignalReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    held, slowly = threading.Event(), threading.Event()

    def hold(_: int) -> None:
        held.wait(60)

    reader.listen((TWO,), hold)
    signal.raise_signal(TWO)
    reader.catch_up(0.01)
    signal.signal(ONE, lambda *_: None)
    signal.raise_signal(ONE)
    monkeypatch.setattr(reader, "_pass_on", lambda _: slowly.wait(0.3))
    threading.Timer(0.1, held.set).start()
    heard = HeardSignals()
    reader.listen((ONE,), heard)
    reader.catch_up()
    assert heard.is_empty()


def test_what_came_before_is_not_heard(reader: SignalReader) -> None:
    theirs: list[int] = []
    reader.listen((TWO,), lambda _: None)  # so that every byte comes here
    for _ in range(100):
        signal.signal(ONE, lambda number, _: theirs.append(number))
        signal.raise_signal(ONE)
        heard = HeardSignals()
        reader.listen((ONE,), heard)
        signal.raise_signal(ONE)
        assert heard.next() == ONE
        assert heard.is_empty()
    assert theirs == [ONE] * 100


def test_the_main_thread_may_be_in_a_call_that_no_signal_interrupts(heard: HeardSignals) -> None:
    library, lock = ctypes.CDLL(None), ctypes.create_string_buffer(64)
    library.pthread_mutex_lock(lock)
    main = threading.get_ident()
    told: list[int] = []

    def signal_twice() -> None:
        for _ in range(2):
            signal.pthread_kill(main, ONE)
            told.append(heard.next())
        library.pthread_mutex_unlock(lock)

    threading.Thread(target=signal_twice, daemon=True).start()
    library.pthread_mutex_lock(lock)
    assert told == [ONE, ONE]


def test_a_handler_that_somebody_sets_later_has_the_signal_for_himself(
    heard: HeardSignals, reader: SignalReader
) -> None:
    theirs: list[int] = []
    signal.signal(ONE, lambda number, _: theirs.append(number))
    assert reader.listener(ONE) is None
    signal.raise_signal(ONE)
    signal.raise_signal(TWO)
    assert heard.next() == TWO
    assert (theirs, heard.is_empty()) == ([ONE], True)


def test_a_handler_that_calls_the_one_before_it_is_heard_once(heard: HeardSignals) -> None:
    before = signal.getsignal(ONE)
    assert callable(before)
    theirs: list[int] = []

    def handle(number: int, frame: FrameType | None) -> None:
        theirs.append(number)
        before(number, frame)

    signal.signal(ONE, handle)
    signal.raise_signal(ONE)
    assert heard.next() == ONE
    signal.raise_signal(TWO)
    assert heard.next() == TWO
    assert (theirs, heard.is_empty()) == ([ONE], True)


async def test_an_event_loop_that_handles_signals_too_gets_its_own(heard: HeardSignals, reader: SignalReader) -> None:
    loop, woken = asyncio.get_running_loop(), asyncio.Event()
    loop.add_signal_handler(OTHER, woken.set)

    async def wake_the_loop() -> None:
        signal.raise_signal(OTHER)
        async with asyncio.timeout(60):
            await woken.wait()
        woken.clear()

    for _ in range(2):  # first the loop has the descriptor, then the reader
        signal.raise_signal(ONE)
        assert heard.next() == ONE
        await wake_the_loop()
    assert heard.is_empty()
    reader.leave((ONE, TWO))
    await wake_the_loop()
    loop.remove_signal_handler(OTHER)


def test_what_a_closed_event_loop_had_gets_no_bytes(heard: HeardSignals) -> None:
    theirs, sender = os.pipe()
    os.set_blocking(sender, False)
    signal.set_wakeup_fd(sender)
    signal.raise_signal(ONE)  # the reader takes it
    assert heard.next() == ONE
    signal.raise_signal(TWO)
    assert heard.next() == TWO
    assert os.read(theirs, 10)[:2] == bytes([ONE, TWO])
    os.close(theirs)
    os.close(sender)
    reused, other = os.pipe()  # the same numbers, for something else
    assert {reused, other} == {theirs, sender}
    os.set_blocking(reused, False)
    signal.raise_signal(ONE)
    assert heard.next() == ONE
    with pytest.raises(BlockingIOError):
        os.read(reused, 1)
    os.close(reused)
    os.close(other)


def test_a_forked_child_tells_the_parent_nothing(heard: HeardSignals) -> None:
    child = os.fork()
    if child == 0:
        try:
            is_left = signal.getsignal(ONE) is signal.SIG_IGN and signal.set_wakeup_fd(-1) == -1
            signal.raise_signal(ONE)
            os._exit(0 if is_left else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    signal.raise_signal(TWO)
    assert heard.next() == TWO
    assert heard.is_empty()


def test_a_duplicate_is_closed_with_the_last_listener(heard: HeardSignals, reader: SignalReader) -> None:
    theirs, sender = os.pipe()
    os.set_blocking(sender, False)
    signal.set_wakeup_fd(sender)
    signal.raise_signal(ONE)  # the reader takes it
    assert heard.next() == ONE
    signal.raise_signal(TWO)
    reader.leave((ONE, TWO))
    assert signal.set_wakeup_fd(-1) == sender
    os.close(sender)
    told = b""
    while part := os.read(theirs, 10):  # until nobody has the other end
        told += part
    os.close(theirs)
    assert told == bytes([ONE, TWO])


def test_a_listener_that_fails_does_not_keep_the_next_signal_from_being_heard(
    reader: SignalReader, heard: HeardSignals, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail(number: int) -> None:
        raise ValueError("no good")

    reader.listen((ONE,), fail)
    signal.raise_signal(ONE)
    signal.raise_signal(TWO)
    assert heard.next() == TWO
    assert capfd.readouterr().err == f"the listener of signal {ONE} failed: ValueError('no good')\n"


def test_a_deadline_is_kept_unless_its_signal_is_left(reader: SignalReader) -> None:
    ended: SimpleQueue[int] = SimpleQueue()
    begun: SimpleQueue[int] = SimpleQueue()

    def arrived(number: int) -> None:
        reader.end_later(number, partial(ended.put, number), 0.05 if number == ONE else 3600)
        begun.put(number)

    reader.listen((ONE, TWO), arrived)
    for number in (TWO, ONE):
        signal.raise_signal(number)
        assert begun.get(timeout=60) == number
    assert ended.get(timeout=60) == ONE
    assert list(reader._deadlines) == [TWO]
    reader.leave((ONE,))
    assert list(reader._deadlines) == [TWO]
    reader.leave((TWO,))
    assert not reader._deadlines


def test_an_end_that_fails_does_not_keep_the_next_signal_from_being_heard(
    reader: SignalReader, heard: HeardSignals
) -> None:
    ended = threading.Event()

    def end() -> None:
        ended.set()
        raise ValueError("no good")

    reader.listen((ONE,), lambda number: reader.end_later(number, end, 0.0))
    signal.raise_signal(ONE)
    assert ended.wait(60)
    signal.raise_signal(TWO)
    assert heard.next() == TWO


@pytest.mark.parametrize("stream", [None, io.StringIO(), object()])
def test_the_last_word_is_said_whatever_work_made_of_stderr(stream: Any, capfd: pytest.CaptureFixture[str]) -> None:
    say_last("good bye", stream)
    assert capfd.readouterr().err == "good bye\n"
