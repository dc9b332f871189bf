"""A project whose environment cannot be read."""

from __future__ import annotations

from ostinato.stores.base import Store
from ostinato.testing.store_suite.builders import (
    NOW,
)
from tests.stores.places import raw, switch_checks_off


async def test_an_environment_that_cannot_be_read_hides_no_project(store: Store) -> None:
    await store.projects.put_project("blog", "/srv/blog", {}, NOW)
    await store.projects.put_project("shop", "/srv/shop", {}, NOW)
    await switch_checks_off(store)
    await raw(store, "UPDATE projects SET env = 'nonsense' WHERE name = 'blog'")
    assert [project.name for project in await store.projects.list_projects()] == ["blog", "shop"]
