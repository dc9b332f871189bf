"""Two nodes on one database use the same sessions at once: one order, exact limits, and nobody left behind."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import Awaitable

from ostinato.clock import SECOND, from_micros
from ostinato.models.run import INTERRUPTED, ClaimedRun, Ending, RunFilter
from ostinato.models.session import Delivery, Drop, Mode, Sent
from ostinato.models.states import Cause, RunState
from ostinato.stores.base import Store
from ostinato.testing.store_suite.builders import (
    MINUTE,
    NOW,
    all_runs,
    claim,
    claim_one,
    finish,
    plan,
    put,
    retry,
    scheduled_run,
)
from ostinato.testing.store_suite.mailbox import events, message, payloads, row, run_all, send, send_all, session

ROUNDS = 12


async def both(one: Awaitable[object], other: Awaitable[object]) -> None:
    """Let two things happen at once; that they wait for each other for ever is a failure."""
    async with asyncio.timeout(20):
        await asyncio.gather(one, other)


async def claimed(store: Store, node: str = "node-1", now: int = NOW) -> list[ClaimedRun]:
    return list((await store.runs.claim_runs(claim(node=node, now=now, room=50))).runs)


async def test_messages_of_two_nodes_are_executed_once_each_in_the_order_they_were_taken(
    first: Store, second: Store
) -> None:
    keys, each = ("a", "b", "c"), 20
    sending = 2
    highest: Counter[str] = Counter()
    executed: dict[str, list[tuple[str, int]]] = {key: [] for key in keys}

    async def sender(store: Store, name: str) -> None:
        nonlocal sending
        for number, key in itertools.product(range(each), keys):
            await send(store, [name, number], session=key)
        sending -= 1

    async def worker(store: Store, node: str) -> None:
        nonlocal highest
        while True:
            was_sending = sending
            runs = await claimed(store, node)
            highest |= Counter(run.session or "" for run in await all_runs(first, states=(RunState.RUNNING,)))
            for run in runs:
                (payload,) = payloads(run)
                executed[run.session or ""].append(tuple(payload))
            done = await store.runs.finish_runs([finish(run) for run in runs])
            assert list(done.lost) == []
            if not runs and not was_sending and not await store.runs.count_active(NOW):
                return
            await asyncio.sleep(0)

    async with asyncio.timeout(50):
        await asyncio.gather(sender(first, "x"), sender(second, "y"), worker(first, "node-1"), worker(second, "node-2"))
    assert highest == dict.fromkeys(keys, 1)
    for key in keys:
        taken = [
            tuple(payloads(run)[0])
            for run in reversed(await first.runs.list_runs(RunFilter(limit=1000)))
            if run.session == key
        ]
        assert executed[key] == taken, "the order of the rows is the order of execution"
        for name in ("x", "y"):
            assert [number for who, number in taken if who == name] == list(range(each))


async def test_two_nodes_together_never_pass_what_a_session_allows(first: Store, second: Store) -> None:
    await send_all(first, *range(60), max_concurrent=3)
    highest = 0

    async def worker(store: Store, node: str) -> int:
        nonlocal highest
        done = 0
        while await store.runs.count_active(NOW):
            runs = await claimed(store, node)
            highest = max(highest, len(await all_runs(first, states=(RunState.RUNNING,))))
            await store.runs.finish_runs([finish(run) for run in runs])
            done += len(runs)
        return done

    async with asyncio.timeout(50):
        done = await asyncio.gather(*(worker(s, f"{n}{w}") for n, s in enumerate((first, second)) for w in "ab"))
    assert sum(done) == 60
    assert highest <= 3


async def test_an_end_and_a_message_at_the_same_time_leave_nobody_waiting(first: Store, second: Store) -> None:
    """One sees the run under way and waits, the other sees nobody waiting: that must not happen."""
    for number in range(ROUNDS):
        await send(first, 1, session=f"s{number}")
        (run,) = await claimed(first)
        await both(first.runs.finish_runs([finish(run)]), send(second, 2, session=f"s{number}"))
        (next_run,) = await claimed(first)
        assert payloads(next_run) == [2], number
        await first.runs.finish_runs([finish(next_run)])


async def test_a_cancel_and_a_message_at_the_same_time_leave_nobody_waiting(first: Store, second: Store) -> None:
    for number in range(ROUNDS):
        sent = await send(first, 1, session=f"s{number}")
        assert sent.id is not None
        await both(
            first.runs.cancel_runs([sent.id], Ending(Cause.CANCELLED, "not needed"), NOW),
            send(second, 2, session=f"s{number}"),
        )
        assert await run_all(first) == [[2]], number


async def test_a_cleared_lane_and_a_message_at_the_same_time_leave_nobody_waiting(first: Store, second: Store) -> None:
    for number in range(ROUNDS):
        await send(first, 1, session=f"s{number}", lane="team")
        await both(first.lanes.clear_lane("team", NOW, None, 100), send(second, 2, session=f"s{number}"))
        assert await run_all(first) == [[2]], number


async def test_a_fire_and_a_message_at_the_same_time_leave_nobody_waiting(first: Store, second: Store) -> None:
    for number in range(ROUNDS):
        id = await put(first, f"report {number}")
        fire = scheduled_run(
            id, NOW, session=f"s{number}", waiting=True, mode=Mode.QUEUE, work=message("fire").run.work
        )
        await both(
            first.schedules.record_fires([plan(id, read_next_at=NOW + 5 * MINUTE, runs=(fire,))], NOW),
            send(second, 1, session=f"s{number}"),
        )
        assert sorted(map(str, await run_all(first))) == ["['fire']", "[1]"], number


async def test_two_ends_at_the_same_time_give_two_turns(first: Store, second: Store) -> None:
    for number in range(ROUNDS):
        await send_all(first, 1, 2, 3, 4, session=f"s{number}", max_concurrent=2)
        one, two = await claimed(first)
        await both(first.runs.finish_runs([finish(one)]), second.runs.finish_runs([finish(two)]))
        runs = await claimed(first)
        assert [payloads(run) for run in runs] == [[3], [4]], number
        await first.runs.finish_runs([finish(run) for run in runs])


async def test_two_messages_at_the_same_time_do_not_both_get_the_turn(first: Store, second: Store) -> None:
    for number in range(ROUNDS):
        await both(send(first, 1, session=f"s{number}"), send(second, 2, session=f"s{number}"))
        (run,) = await claimed(first)
        await first.runs.finish_runs([finish(run)])
        (other,) = await claimed(second)
        assert run.id < other.id
        await second.runs.finish_runs([finish(other)])


async def test_a_followup_and_a_message_at_the_same_time_do_not_both_go(first: Store, second: Store) -> None:
    for number in range(ROUNDS):
        await both(
            send(first, 1, session=f"s{number}", mode=Mode.FOLLOWUP, max_concurrent=5),
            send(second, 2, session=f"s{number}", max_concurrent=5),
        )
        (run,) = await claimed(first)
        await first.runs.finish_runs([finish(run)])
        (other,) = await claimed(second)
        await second.runs.finish_runs([finish(other)])


async def test_a_full_queue_is_exact_whoever_sends(first: Store, second: Store) -> None:
    for number in range(4):
        key = f"s{number}"
        sent = await asyncio.gather(
            *(send(store, n, session=key, cap=5) for n in range(12) for store in (first, second))
        )
        dropped = [id for one in sent for id in one.dropped]
        assert len(dropped) == len(set(dropped)) == 24 - 5
        assert (await session(first, key)).queued == 5
        rows = sorted(run.id for run in await first.runs.list_runs(RunFilter(limit=1000)) if run.session == key)
        assert sorted(dropped) == rows[:-5], "the oldest went"


async def test_a_full_queue_that_refuses_is_exact_whoever_sends(first: Store, second: Store) -> None:
    for number in range(4):
        key = f"s{number}"
        sent = await asyncio.gather(
            *(send(store, n, session=key, cap=5, drop=Drop.NEW) for n in range(12) for store in (first, second))
        )
        assert Counter(one.delivery for one in sent) == {Delivery.QUEUED: 5, Delivery.REFUSED: 19}
        assert (await session(first, key)).queued == 5


async def test_a_burst_from_two_nodes_is_one_run_with_every_payload_once(first: Store, second: Store) -> None:
    for number in range(4):
        key = f"s{number}"
        sent = await asyncio.gather(
            *(
                send(store, f"{name}{n}", session=key, debounce=SECOND)
                for n in range(10)
                for name, store in (("x", first), ("y", second))
            )
        )
        assert len({one.id for one in sent}) == 1
        assert Counter(one.delivery for one in sent) == {Delivery.QUEUED: 1, Delivery.DEBOUNCED: 19}
        (carried,) = await run_all(first, now=NOW + SECOND)
        assert sorted(carried) == sorted(f"{name}{n}" for n in range(10) for name in "xy")


async def test_a_message_meets_the_close_of_its_burst_and_is_in_exactly_one_run(first: Store, second: Store) -> None:
    """One node starts the followup that waited long enough; the other sends what may still join it."""
    for number in range(ROUNDS):
        key, close = f"s{number}", NOW + SECOND
        await send(first, 1, session=key, mode=Mode.FOLLOWUP, debounce=SECOND)
        started, sent = await asyncio.gather(
            claimed(first, now=close), send(second, 2, session=key, mode=Mode.FOLLOWUP, debounce=SECOND, at=close)
        )
        carried = [payloads(run) for run in started]
        await first.runs.finish_runs([finish(run) for run in started])
        carried += await run_all(first, now=NOW + MINUTE)
        assert carried == ([[1, 2]] if sent.delivery is Delivery.DEBOUNCED else [[1], [2]]), number


async def test_a_message_sent_on_two_nodes_at_once_is_one_row(first: Store, second: Store) -> None:
    for number in range(ROUNDS):
        key = f"s{number}/m"
        one, other = await asyncio.gather(
            send(first, 1, session=f"s{number}", key=key), send(second, 1, session=f"s{number}", key=key)
        )
        assert one == other == Sent(Delivery.QUEUED, one.id)
    assert len(await first.runs.list_runs(RunFilter(limit=100))) == ROUNDS


async def test_of_two_interrupts_at_once_one_is_left(first: Store, second: Store) -> None:
    for number in range(ROUNDS):
        key = f"s{number}"
        await send(first, 0, session=key)
        (run,) = await claimed(first)
        one, other = await asyncio.gather(
            send(first, 1, session=key, mode=Mode.INTERRUPT), send(second, 2, session=key, mode=Mode.INTERRUPT)
        )
        assert sorted([*one.cancelled, *other.cancelled]) == [run.id]
        states = Counter([(await row(first, one.id)).state, (await row(first, other.id)).state])
        assert states == {RunState.QUEUED: 1, RunState.SUPERSEDED: 1}
        await first.runs.finish_runs([finish(run, RunState.SUPERSEDED)])
        assert len(await run_all(first)) == 1


async def test_an_interrupt_and_a_claim_at_the_same_time_leave_no_older_run_untold(first: Store, second: Store) -> None:
    for number in range(ROUNDS):
        key = f"s{number}"
        older = await send_all(first, 1, 2, session=key, max_concurrent=5)
        runs, sent = await asyncio.gather(
            claimed(first), send(second, 3, session=key, mode=Mode.INTERRUPT, max_concurrent=5)
        )
        for id in older:
            seen = await row(first, id)
            told = (seen.state, seen.cancelling) == (RunState.RUNNING, INTERRUPTED.reason)
            assert told or seen.state is RunState.SUPERSEDED, number
        ends = [finish(run, RunState.SUPERSEDED) for run in runs if run.id != sent.id]
        ends += [finish(run) for run in runs if run.id == sent.id]
        await first.runs.finish_runs(ends)
        await run_all(first)


async def test_each_thing_that_two_nodes_do_is_told_once(first: Store, second: Store) -> None:
    async def exchange(store: Store, node: str) -> None:
        for number in range(8):
            await send(store, number, session="s", max_concurrent=2)
            await store.runs.finish_runs([finish(run) for run in await claimed(store, node)])

    await both(exchange(first, "node-1"), exchange(second, "node-2"))
    await run_all(first)
    told = Counter((event.kind.value, event.run) for event in await events(first))
    rows = [run.id for run in await first.runs.list_runs(RunFilter(limit=1000))]
    assert told == {(kind, id): 1 for kind in ("enqueued", "started", "finished") for id in rows}


async def test_ends_and_messages_of_many_sessions_do_not_hold_each_other_up(first: Store, second: Store) -> None:
    """Two nodes touch the same sessions in opposite orders."""
    keys = [f"s{number}" for number in range(8)]
    await first.sessions.send([message(0, session=key) for key in keys], NOW)
    for number in range(1, 7):
        running = {run.session: run for run in await claimed(first)}
        assert sorted(map(str, running)) == keys
        ends = [finish(running[key]) for key in keys]
        await both(
            first.runs.finish_runs(ends),
            second.sessions.send([message(number, session=key) for key in reversed(keys)], NOW),
        )


async def test_nothing_that_was_sent_before_a_stop_of_everything_is_claimed_after_it(
    first: Store, second: Store
) -> None:
    """Senders, workers and put-backs on both nodes are in full swing when one of them stops the session."""
    ticks = itertools.count(NOW)
    sent_at: dict[int, int] = {}
    numbers = itertools.count()
    is_over = False
    claims: list[tuple[int, ClaimedRun]] = []
    """Each claimed run, with the tick at which its claim was asked for."""
    moved = asyncio.Event()

    async def sender(store: Store) -> None:
        while not is_over:
            number, at = next(numbers), next(ticks)
            sent_at[number] = at
            await asyncio.sleep(0)
            await send(store, number, at=at, arrives=next(ticks), cap=None, max_concurrent=2)

    async def worker(store: Store, node: str) -> None:
        while not is_over:
            asked_at = next(ticks)
            for run in await claimed(store, node, now=NOW + MINUTE):
                claims.append((asked_at, run))
                moved.set()
                again = payloads(run)[0] % 3 == 0 and run.attempt < 4
                end = retry(run, ready_at=NOW, finished_at=NOW) if again else finish(run)
                await asyncio.sleep(0)
                await store.runs.finish_runs([end])

    async def stopper() -> list[tuple[int, int]]:
        """The cutoffs, each with a tick by which it was in force."""
        cutoffs = []
        for _ in range(6):
            for _ in range(20):
                await moved.wait()
                moved.clear()
            at = next(ticks)
            await second.sessions.stop("s", everything=True, now=at)
            cutoffs.append((at, next(ticks)))
        return cutoffs

    async with asyncio.timeout(50), asyncio.TaskGroup() as group:
        stopping = group.create_task(stopper())
        for node, store in enumerate((first, second)):
            group.create_task(sender(store))
            group.create_task(worker(store, f"node-{node}"))
        cutoffs = await stopping
        is_over = True
    for cutoff, in_force in cutoffs:
        late = [payloads(run) for asked_at, run in claims if asked_at > in_force and sent_at[payloads(run)[0]] < cutoff]
        assert late == []
    assert claims
    before = from_micros(cutoffs[-1][0])
    older = [run for run in await all_runs(first) if run.due_at < before]
    assert [run.id for run in older if run.state is RunState.QUEUED] == []
    assert [run.id for run in older if run.state is RunState.RUNNING and run.cancelling is None] == []


async def test_a_session_that_is_stopped_while_it_is_used_loses_no_turn(first: Store, second: Store) -> None:
    for number in range(ROUNDS):
        key = f"s{number}"
        await send_all(first, 1, 2, session=key)
        run = await claim_one(first)
        await both(first.runs.finish_runs([finish(run)]), second.sessions.stop(key, everything=False, now=NOW))
        await send(first, 3, session=key)
        left = [payload for (payload,) in await run_all(first)]
        assert left in ([3], [2, 3]), number
