"""Projects, the context that work runs in, and the conversations that runs leave to the next."""

from __future__ import annotations

import pytest

from ostinato.clock import from_micros
from ostinato.models.project import Conversation, Project, ProjectContext
from ostinato.models.run import ClaimedRun, RunFilter
from ostinato.models.schedule import ScheduleFilter
from ostinato.models.states import RunState
from ostinato.stores.base import Store
from ostinato.testing.store_suite.builders import (
    HOUR,
    NOW,
    claim_one,
    draft,
    finish,
    new_run,
    plan,
    put,
    put_many,
    retry,
    scheduled_run,
)

ENV = {"LEVEL": "debug", "TOKEN": "env:TOKEN", "ODD": 'a"b\\c ☃'}


async def names(store: Store, project: str | None) -> list[str]:
    return [schedule.name for schedule in await store.schedules.list_schedules(ScheduleFilter(project=project))]


async def started(store: Store, project: str | None = None) -> ClaimedRun:
    await store.runs.insert_runs([new_run(project=project)])
    return await claim_one(store)


async def talk(store: Store, id: str, key: str = "claude/group/blog", project: str | None = None) -> None:
    """A run that leaves a conversation behind."""
    run = await started(store, project)
    await store.runs.finish_runs([finish(run, conversation=Conversation(key, id, project))])


async def conversation(store: Store, key: str = "claude/group/blog") -> str | None:
    context = await store.projects.find_context(None, key)
    assert context is not None
    return context.conversation


async def test_projects_are_listed_by_name_with_what_belongs_to_them(store: Store) -> None:
    await store.projects.put_project("shop", "/srv/shop", {}, NOW + 1)
    await store.projects.put_project("Blog", "/srv/blog", ENV, NOW)
    await put_many(store, [draft("a", project="shop"), draft("b", project="shop"), draft("c")])
    blog = Project("Blog", "/srv/blog", ENV, 0, from_micros(NOW))
    shop = Project("shop", "/srv/shop", {}, 2, from_micros(NOW + 1))
    assert await store.projects.list_projects() == [blog, shop]
    assert await store.projects.list_projects("shop") == [shop]
    assert await store.projects.list_projects("blog") == []


async def test_a_project_that_is_put_again_is_changed_and_keeps_its_age(store: Store) -> None:
    assert await store.projects.put_project("blog", "/srv/blog", ENV, NOW)
    assert not await store.projects.put_project("blog", "/srv/other", {}, NOW + HOUR)
    assert await store.projects.list_projects() == [Project("blog", "/srv/other", {}, 0, from_micros(NOW))]


async def test_a_project_is_removed_once_no_schedule_belongs_to_it(store: Store) -> None:
    await store.projects.put_project("blog", "/srv/blog", {}, NOW)
    await put(store, project="blog")
    assert not await store.projects.remove_project("blog")
    assert len(await store.projects.list_projects()) == 1
    await put(store, project=None)
    assert await store.projects.remove_project("blog")
    assert not await store.projects.remove_project("blog")
    assert await store.projects.list_projects() == []


async def test_removing_a_project_takes_its_conversations_and_no_others(store: Store) -> None:
    for name in ("blog", "shop"):
        await store.projects.put_project(name, f"/srv/{name}", {}, NOW)
        await talk(store, f"id of {name}", f"claude/group/{name}", name)
    await talk(store, "id of none", "claude/group")
    assert await store.projects.remove_project("blog")
    assert await conversation(store, "claude/group/blog") is None
    assert await conversation(store, "claude/group/shop") == "id of shop"
    assert await conversation(store, "claude/group") == "id of none"


async def test_a_conversation_of_a_project_that_is_gone_is_not_kept(store: Store) -> None:
    await store.projects.put_project("blog", "/srv/blog", {}, NOW)
    run = await started(store, "blog")
    assert await store.projects.remove_project("blog")
    await store.runs.finish_runs([finish(run, conversation=Conversation("claude/group/blog", "id", "blog"))])
    assert await conversation(store) is None


async def test_the_context_says_where_the_project_is(store: Store) -> None:
    await store.projects.put_project("blog", "/srv/blog", ENV, NOW)
    assert await store.projects.find_context("blog", None) == ProjectContext("/srv/blog", ENV)
    assert await store.projects.find_context("blog", "claude/group/blog") == ProjectContext("/srv/blog", ENV)
    assert await store.projects.find_context(None, None) == ProjectContext()
    assert await store.projects.find_context(None, "claude/session:x") == ProjectContext()


async def test_there_is_no_context_without_the_project(store: Store) -> None:
    await store.projects.put_project("blog", "/srv/blog", {}, NOW)
    await talk(store, "id", "claude/group/shop")
    assert await store.projects.find_context("shop", None) is None
    assert await store.projects.find_context("shop", "claude/group/shop") is None
    assert await store.projects.find_context("Blog", None) is None


async def test_the_context_has_the_conversation_of_its_key(store: Store) -> None:
    await store.projects.put_project("blog", "/srv/blog", ENV, NOW)
    await talk(store, "abc", project="blog")
    await talk(store, "other", "claude/session:x")
    assert await store.projects.find_context("blog", "claude/group/blog") == ProjectContext("/srv/blog", ENV, "abc")
    assert await store.projects.find_context(None, "claude/session:x") == ProjectContext(conversation="other")


async def test_the_latest_run_of_a_conversation_counts(store: Store) -> None:
    for id in ("first", "second", "third"):
        await talk(store, id)
        assert await conversation(store) == id


async def test_two_runs_of_one_batch_may_leave_the_same_conversation(store: Store) -> None:
    runs = [await started(store) for _ in range(3)]
    left = [Conversation(key, id) for key, id in (("k", "one"), ("other", "two"), ("k", "three"))]
    await store.runs.finish_runs(
        [finish(run, conversation=conversation) for run, conversation in zip(runs, left, strict=True)]
    )
    assert (await conversation(store, "k"), await conversation(store, "other")) == ("three", "two")


async def test_an_attempt_that_is_tried_again_leaves_its_conversation_too(store: Store) -> None:
    run = await started(store)
    await store.runs.finish_runs([retry(run, conversation=Conversation("k", "id"))])
    assert await conversation(store, "k") == "id"


@pytest.mark.parametrize("kind", ["end", "retry"])
async def test_a_finish_whose_token_is_lost_leaves_no_conversation(store: Store, kind: str) -> None:
    run = await started(store)
    await store.runs.finish_runs([retry(run, ready_at=NOW)])
    await claim_one(store, now=NOW + HOUR)
    left = Conversation("k", "late")
    late = finish(run, conversation=left) if kind == "end" else retry(run, conversation=left, error="late")
    assert list((await store.runs.finish_runs([late])).lost) == [run.id]
    assert await conversation(store, "k") is None


async def test_an_end_that_is_written_twice_does_not_bring_an_old_conversation_back(store: Store) -> None:
    run = await started(store)
    end = finish(run, conversation=Conversation("k", "old"))
    await store.runs.finish_runs([end])
    await talk(store, "new", "k")
    assert list((await store.runs.finish_runs([end])).lost) == []
    assert await conversation(store, "k") == "new"


async def test_schedules_are_listed_by_project(store: Store) -> None:
    await put_many(
        store, [draft("a", project="blog"), draft("b", project="Blog"), draft("c", project="blog"), draft("d")]
    )
    assert await names(store, "blog") == ["a", "c"]
    assert await names(store, "shop") == []
    assert await names(store, None) == ["a", "b", "c", "d"]


async def test_a_run_knows_its_project_all_its_life(store: Store) -> None:
    id = await put(store, project="blog")
    await store.schedules.record_fires([plan(id, runs=(scheduled_run(id, project="blog"),))], NOW)
    (shown,) = await store.runs.list_runs(RunFilter())
    assert shown.project == "blog"
    run = await claim_one(store, now=NOW + HOUR)
    assert run.project == "blog"
    await store.runs.finish_runs([finish(run, RunState.FAILED)])
    again = await store.runs.repeat_run(run.id, NOW)
    assert again is not None
    assert (await claim_one(store, now=NOW + HOUR)).project == "blog"
    schedule = await store.schedules.get_schedule("report")
    assert schedule is not None
    assert schedule.last_run is not None
    assert (schedule.project, schedule.last_run.project) == ("blog", "blog")


async def test_a_due_schedule_knows_its_project(store: Store) -> None:
    await put_many(store, [draft("a", project="blog"), draft("b")])
    due = await store.schedules.due_schedules(NOW + HOUR, 10)
    assert {schedule.name: schedule.project for schedule in due.schedules} == {"a": "blog", "b": None}


async def test_runs_of_lost_nodes_know_their_project(store: Store) -> None:
    run = await started(store, "blog")
    assert [(stale.id, stale.project) for stale in (await store.runs.stale_runs([], NOW)).runs] == [(run.id, "blog")]


async def test_runs_are_listed_by_project(store: Store) -> None:
    inserted = await store.runs.insert_runs([new_run(project=name) for name in ("blog", "shop", None, "blog")])
    listed = await store.runs.list_runs(RunFilter(project="blog"))
    assert [run.id for run in listed] == [inserted[3], inserted[0]]
    assert await store.runs.list_runs(RunFilter(project="blog", task="other")) == []
