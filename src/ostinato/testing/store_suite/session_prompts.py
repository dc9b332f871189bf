"""Prompts in sessions: a burst becomes one prompt of one agent, and one run at a time continues a conversation."""

from __future__ import annotations

from typing import Any

import pytest

from ostinato.clock import SECOND
from ostinato.models.run import RunFilter
from ostinato.models.session import Delivery, Sent
from ostinato.models.work import Agent, read_work
from ostinato.stores.base import Store
from ostinato.testing.store_suite.builders import MINUTE, NOW, claim, claim_one, finish
from ostinato.testing.store_suite.mailbox import message, send

QUIET = SECOND
CHAT = Agent(context="session:s")
AWKWARD = 'say "hi" to C:\\temp, {"context":"session:x"} \n\t\x00 𝄞 é'


async def prompts(store: Store, now: int = NOW + MINUTE) -> list[str]:
    """Claim what may start now; answers the prompts."""
    claimed = await store.runs.claim_runs(claim(now=now, room=100))
    works = [read_work(run.work) for run in claimed.runs]
    assert all(isinstance(work, Agent) for work in works)
    return [work.prompt for work in works if isinstance(work, Agent)]


async def test_a_burst_of_prompts_is_one_prompt_in_paragraphs(store: Store) -> None:
    burst = await send(store, "a", agent=CHAT, debounce=QUIET)
    for text in ("b", AWKWARD):
        assert await send(store, text, agent=CHAT, debounce=QUIET) == Sent(Delivery.DEBOUNCED, burst.id)
    assert await prompts(store) == [f"a\n\nb\n\n{AWKWARD}"]


async def test_a_prompt_that_joined_has_a_row_with_its_own_text(store: Store) -> None:
    burst = await send(store, "a", agent=CHAT, debounce=QUIET)
    await send(store, "b", agent=CHAT, debounce=QUIET, key="s/b")
    (own,) = [run for run in await store.runs.list_runs(RunFilter()) if run.id != burst.id]
    assert (own.work, own.result) == (Agent("b", context="session:s"), {"run": burst.id})


@pytest.mark.parametrize(
    "between",
    [
        {"agent": Agent(context="session:s", model="opus")},
        {"agent": Agent(context="session:s", cli="codex")},
        {"agent": Agent("Be brief.", context="session:s")},
        {"agent": CHAT, "project": "blog"},
        {"agent": None},
    ],
    ids=["another model", "another cli", "another prompt of its own", "another project", "a task"],
)
async def test_a_prompt_joins_only_one_for_the_same_agent(store: Store, between: dict[str, Any]) -> None:
    await send(store, "a", agent=CHAT, debounce=QUIET)
    other = await send(store, "b", debounce=QUIET, **between)
    third = await send(store, "c", agent=CHAT, debounce=QUIET)
    assert [other.delivery, third.delivery] == [Delivery.QUEUED] * 2


@pytest.mark.parametrize("context", ["session:s", "group"])
async def test_a_conversation_is_continued_by_one_run_at_a_time_however_many_may_go(store: Store, context: str) -> None:
    agent = Agent(context=context)
    for text in ("a", "b", "c"):
        await send(store, text, agent=agent, max_concurrent=3)
    (first,) = (await store.runs.claim_runs(claim(room=100))).runs
    done = await store.runs.finish_runs([finish(first)], claim(room=100))
    assert [read_work(run.work) for run in done.claimed.runs] == [Agent("b", context=context)]


async def test_a_conversation_goes_beside_no_other_run_of_its_session(store: Store) -> None:
    await store.sessions.send([message(1, max_concurrent=3), message("a", agent=CHAT), message(2)], NOW)
    task = await claim_one(store)
    assert task.task == "report"
    done = await store.runs.finish_runs([finish(task)], claim(room=100))
    (agent,) = done.claimed.runs
    assert agent.kind == "agent"
    done = await store.runs.finish_runs([finish(agent)], claim(room=100))
    assert [run.task for run in done.claimed.runs] == ["report"]


@pytest.mark.parametrize("context", [None, "isolated"])
async def test_fresh_conversations_go_side_by_side_as_any_other_run(store: Store, context: str | None) -> None:
    for text in ("a", '"context":"session:s"', "c"):
        await send(store, text, agent=Agent(context=context), max_concurrent=3)
    assert len(await prompts(store)) == 3
