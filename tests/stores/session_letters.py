"""What `test_session_model` draws at random: letters of every kind, times, and the messages that letters become."""

from __future__ import annotations

from hypothesis import strategies as st

from ostinato.clock import SECOND, Micros
from ostinato.models.session import Drop, Message, Mode
from ostinato.models.work import Agent
from ostinato.testing.store_suite.mailbox import call, message
from tests.stores.session_model import Letter

__all__ = ["AHEAD", "KEYS", "LANES", "MILLISECOND", "TASKS", "as_message", "calls", "letters", "throttles", "times"]

MILLISECOND: Micros = 1_000
AHEAD: Micros = 100 * MILLISECOND
KEYS = ("a", "a", "b")
"""Most of it in one session, so that something happens there."""
LANES = ("main", "narrow")
TASKS = ("other", "report")

times = st.sampled_from([1, 50, 100, 299, 300, 301, 500, 800, 2_000]).map(lambda n: n * MILLISECOND)
letters = st.builds(
    Letter,
    session=st.sampled_from(KEYS),
    task=st.sampled_from(["report", "report", "report", "other"]),
    agent=st.sampled_from([None] * 4 + ["chat"] * 3 + ["opus", "fresh"]),
    mode=st.sampled_from([Mode.QUEUE] * 4 + [Mode.FOLLOWUP] * 2 + [Mode.INTERRUPT]),
    lane=st.sampled_from(["main", "main", "narrow"]),
    priority=st.sampled_from([0, 0, 1]),
    max_concurrent=st.sampled_from([None, None, 1, 2, 3]),
    cap=st.sampled_from([None, None, 1, 2, 3, 3]),
    drop=st.sampled_from([Drop.OLD, Drop.OLD, Drop.NEW]),
    debounce=st.sampled_from([0, 0, 300 * MILLISECOND, 800 * MILLISECOND]),
    ceiling=st.sampled_from([0, 500 * MILLISECOND, SECOND]),
    max_age=st.sampled_from([None, None, None, None, SECOND]),
    delay=st.sampled_from([0, 0, 0, 1 * MILLISECOND, 500 * MILLISECOND]),
)
calls = st.builds(
    Letter,
    session=st.sampled_from(KEYS),
    agent=st.sampled_from([None, None, "chat", "fresh"]),
    lane=st.sampled_from(LANES),
    priority=st.sampled_from([0, 1]),
    delay=st.sampled_from([0, 0, 1 * MILLISECOND]),
    is_call=st.just(True),
    later=st.sampled_from([0, 300 * MILLISECOND, 2 * SECOND]),
)
throttles = st.sampled_from([None, None, None, True, False])


def as_message(number: int, letter: Letter, arrived: Micros) -> Message:
    """A letter as a sender gives it to a store, and some with a key."""
    sent_at = arrived - letter.delay
    if letter.is_call:
        return call(
            number,
            session=letter.session,
            at=sent_at,
            later=letter.later,
            agent=_agent(letter),
            lane=letter.lane,
            priority=letter.priority,
        )
    return message(
        number,
        session=letter.session,
        at=sent_at,
        task=letter.task,
        agent=_agent(letter),
        lane=letter.lane,
        priority=letter.priority,
        expires_at=None if letter.max_age is None else sent_at + letter.max_age,
        key=f"{letter.session}/{number}" if number % 2 else None,
        mode=letter.mode,
        max_concurrent=letter.max_concurrent,
        cap=letter.cap,
        drop=letter.drop,
        debounce=letter.debounce,
        ceiling=letter.ceiling,
    )


def _agent(letter: Letter) -> Agent | None:
    if letter.agent is None:
        return None
    if letter.agent == "fresh":
        return Agent(context="isolated")
    return Agent(context=f"session:{letter.session}", model=None if letter.agent == "chat" else letter.agent)
