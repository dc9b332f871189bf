"""Who may: tokens, codes and logins by their hash; the audit log; answers to repeated requests; what prunes them."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from ostinato.clock import SECOND, Micros, from_micros
from ostinato.models.access import Actor, Answer, AuditFilter, Login, NewLogin, NewToken, Role
from ostinato.stores.access import AccessCounts
from ostinato.stores.base import Store
from ostinato.testing.store_suite.builders import HOUR, MINUTE, NOW

DAY = 24 * HOUR
ORIGIN = "hash of the origin's key"
ADA = Actor("ada", "api", "127.0.0.1")


def token(name: str = "script", **fields: Any) -> NewToken:
    given = {"role": Role.OPERATOR, "owner": "ada", "hash": f"hash of {name}", "expires_at": None}
    return NewToken(name, **{**given, **fields})


def login(hash: str = "cookie", **fields: Any) -> NewLogin:
    given = {"who": "ada", "role": Role.ADMIN, "expires_at": NOW + DAY, "origin_hash": ORIGIN}
    return NewLogin(hash, **{**given, **fields})


async def find(store: Store, hash: str, now: Micros) -> Login | None:
    """The login of this cookie, however long it was not used."""
    return await store.access.find_login(hash, ORIGIN, now, 0)


async def exchange(store: Store, code: str, now: Micros) -> Login | None:
    """A login of a day for a code."""
    return await store.access.exchange_code(code, f"cookie of {code}", ORIGIN, now + DAY, now)


async def test_a_token_is_found_by_its_hash_and_by_nothing_else(store: Store) -> None:
    made = await store.access.put_token(token(expires_at=NOW + DAY), NOW)
    assert made is not None
    assert (made.name, made.role, made.owner, made.used_at) == ("script", Role.OPERATOR, "ada", None)
    assert (made.created_at, made.expires_at) == (from_micros(NOW), from_micros(NOW + DAY))
    found = await store.access.find_token("hash of script", NOW + SECOND)
    assert found is not None
    assert (found.id, found.used_at) == (made.id, from_micros(NOW + SECOND))
    for hash in ("", "script", "hash of scrip", "HASH OF SCRIPT", "%"):
        assert await store.access.find_token(hash, NOW) is None
    assert await store.access.list_tokens() == [found]


async def test_a_name_is_given_to_one_token(store: Store) -> None:
    assert await store.access.put_token(token("b"), NOW) is not None
    assert await store.access.put_token(token("a"), NOW) is not None
    assert await store.access.put_token(token("b", hash="another"), NOW) is None
    assert [one.name for one in await store.access.list_tokens()] == ["a", "b"]
    assert await store.access.find_token("another", NOW) is None


async def test_a_token_counts_until_it_expires_and_is_listed_after(store: Store) -> None:
    await store.access.put_token(token(expires_at=NOW + DAY), NOW)
    assert await store.access.find_token("hash of script", NOW + DAY - 1) is not None
    assert await store.access.find_token("hash of script", NOW + DAY) is None
    assert [one.name for one in await store.access.list_tokens()] == ["script"]


async def test_the_logins_and_codes_of_a_token_go_with_it(store: Store) -> None:
    made = await store.access.put_token(token(), NOW)
    other = await store.access.put_token(token("other"), NOW)
    assert made is not None
    assert other is not None
    await store.access.put_login(login("of it", token_id=made.id), NOW)
    await store.access.put_login(login("of another", token_id=other.id), NOW)
    await store.access.put_login(login("of none"), NOW)
    await store.access.put_code(login("code", token_id=made.id), NOW)
    assert await store.access.remove_token(made.id)
    assert not await store.access.remove_token(made.id)
    assert await find(store, "of it", NOW) is None
    assert await exchange(store, "code", NOW) is None
    assert await find(store, "of another", NOW) is not None
    assert await find(store, "of none", NOW) is not None


async def test_a_login_ends_with_the_time_of_its_token(store: Store) -> None:
    made = await store.access.put_token(token(expires_at=NOW + HOUR), NOW)
    assert made is not None
    await store.access.put_login(login(token_id=made.id), NOW)
    assert await find(store, "cookie", NOW + HOUR - 1) is not None
    assert await find(store, "cookie", NOW + HOUR) is None


async def test_nothing_is_made_with_a_token_that_is_gone(store: Store) -> None:
    made = await store.access.put_token(token(), NOW)
    assert made is not None
    assert await store.access.put_login(login("before", token_id=made.id), NOW)
    await store.access.remove_token(made.id)
    assert not await store.access.put_login(login(token_id=made.id), NOW)
    await store.access.put_code(login("code", token_id=made.id), NOW)
    assert await find(store, "cookie", NOW) is None
    assert await exchange(store, "code", NOW) is None


async def test_a_login_is_found_until_it_ends(store: Store) -> None:
    await store.access.put_login(login(), NOW)
    found = await find(store, "cookie", NOW + 1)
    assert found is not None
    assert (found.who, found.role, found.token_id) == ("ada", Role.ADMIN, None)
    assert (found.used_at, found.expires_at) == (from_micros(NOW + 1), from_micros(NOW + DAY))
    assert await find(store, "cookie", NOW + DAY) is None
    assert await store.access.remove_login("cookie") == "ada"
    assert await store.access.remove_login("cookie") is None
    assert await find(store, "cookie", NOW) is None


async def test_a_cookie_is_worth_nothing_without_the_key_of_its_origin(store: Store) -> None:
    await store.access.put_login(login("mine"), NOW)
    await store.access.put_login(login("other", origin_hash="of another"), NOW)
    await store.access.put_code(login("code"), NOW)
    assert await exchange(store, "code", NOW) is not None
    for hash in ("mine", "cookie of code"):
        assert await store.access.find_login(hash, ORIGIN, NOW, 0) is not None
        for key in ("", "of another", "%", ORIGIN.upper()):
            assert await store.access.find_login(hash, key, NOW, 0) is None


async def test_a_login_that_is_not_used_ends_and_one_that_is_used_does_not(store: Store) -> None:
    """Idle for an hour; the use is noted, and the time of the login itself counts before the first one."""
    await store.access.put_login(login("idle"), NOW)
    await store.access.put_login(login("used"), NOW)

    async def is_in(hash: str, now: Micros) -> bool:
        return await store.access.find_login(hash, ORIGIN, now, now - HOUR) is not None

    assert await is_in("used", NOW + HOUR - 1)
    assert not await is_in("idle", NOW + HOUR)
    later = NOW + 2 * HOUR - 2
    assert await is_in("used", later)
    assert len(await store.access.list_logins(later, later - HOUR)) == 1
    assert await store.access.count_access(later, later - HOUR) == AccessCounts(0, 1)
    assert not await is_in("used", later + HOUR)
    assert await store.access.list_logins(later + HOUR, later) == []


async def test_logins_are_listed_while_they_are_in_force_the_newest_first(store: Store) -> None:
    made = await store.access.put_token(token(expires_at=NOW + HOUR), NOW)
    assert made is not None
    await store.access.put_login(login("short", expires_at=NOW + MINUTE), NOW)
    await store.access.put_login(login("of it", who="script", role=Role.VIEWER, token_id=made.id), NOW + 1)
    await store.access.put_login(login(), NOW + 2)
    await find(store, "of it", NOW + 3)
    newest, of_token, short = await store.access.list_logins(NOW + 3, 0)
    assert (newest.who, newest.role, newest.token, newest.used_at) == ("ada", Role.ADMIN, None, None)
    assert (of_token.who, of_token.role, of_token.token) == ("script", Role.VIEWER, "script")
    assert (of_token.created_at, of_token.used_at) == (from_micros(NOW + 1), from_micros(NOW + 3))
    assert (of_token.expires_at, short.expires_at) == (from_micros(NOW + DAY), from_micros(NOW + MINUTE))
    assert [one.id for one in await store.access.list_logins(NOW + MINUTE, 0)] == [newest.id, of_token.id]
    assert [one.id for one in await store.access.list_logins(NOW + HOUR, 0)] == [newest.id]


async def test_logins_are_ended_one_by_one_by_whose_they_are_or_all(store: Store) -> None:
    for hash, who in (("a1", "ada"), ("a2", "ada"), ("b1", "bob"), ("b2", "bob"), ("c1", "cy")):
        await store.access.put_login(login(hash, who=who), NOW)
    for code, who in (("code of ada", "ada"), ("code of bob", "bob"), ("code of cy", "cy")):
        await store.access.put_code(login(code, who=who), NOW)
    last = (await store.access.list_logins(NOW, 0))[-1]
    assert await store.access.remove_logins(id=last.id) == ["ada"]
    assert await store.access.remove_logins(id=last.id) == []
    assert await find(store, "a1", NOW) is None
    assert await exchange(store, "code of ada", NOW) is not None
    assert await store.access.remove_logins(who="bob") == ["bob", "bob"]
    assert await store.access.remove_logins(who="bob\0") == []
    assert await exchange(store, "code of bob", NOW) is None
    assert {one.who for one in await store.access.list_logins(NOW, 0)} == {"ada", "cy"}
    assert sorted(await store.access.remove_logins()) == ["ada", "ada", "cy"]
    assert await store.access.list_logins(NOW, 0) == []
    assert await exchange(store, "code of cy", NOW) is None


async def test_a_code_gives_one_login_and_only_in_time(store: Store) -> None:
    await store.access.put_code(login("code", role=Role.VIEWER, expires_at=NOW + 15 * MINUTE), NOW)
    await store.access.put_code(login("late", expires_at=NOW + 15 * MINUTE), NOW)
    then = NOW + 15 * MINUTE - 1
    made = await store.access.exchange_code("code", "cookie", ORIGIN, then + DAY, then)
    assert made == Login("ada", Role.VIEWER, None, None, from_micros(then + DAY))
    assert await store.access.exchange_code("code", "another", ORIGIN, NOW + DAY, NOW) is None
    assert await store.access.exchange_code("late", "another", ORIGIN, NOW + DAY, then + 1) is None
    assert await store.access.exchange_code("nothing", "another", ORIGIN, NOW + DAY, NOW) is None
    assert [one.created_at for one in await store.access.list_logins(NOW, 0)] == [from_micros(then)]
    found = await find(store, "cookie", then)
    assert found == replace(made, used_at=from_micros(then))


async def test_of_many_that_exchange_a_code_at_once_one_gets_a_login(first: Store, second: Store) -> None:
    for turn in range(10):
        await first.access.put_code(login("code"), NOW)
        made = await asyncio.gather(
            *(
                one.access.exchange_code("code", f"cookie {turn} {number}", ORIGIN, NOW + DAY, NOW)
                for number, one in enumerate((first, second) * 4)
            )
        )
        assert sum(found is not None for found in made) == 1
        assert len(await first.access.list_logins(NOW, 0)) == turn + 1


async def test_no_login_outlives_a_logout_that_meets_its_code(first: Store, second: Store) -> None:
    for turn in range(20):
        code = f"code {turn}"
        await first.access.put_code(login(code), NOW)
        made, ended = await asyncio.gather(exchange(first, code, NOW), second.access.remove_logins(who="ada"))
        assert ended == ([] if made is None else ["ada"])
        assert await first.access.list_logins(NOW, 0) == []


async def test_what_can_get_in_is_counted(store: Store) -> None:
    assert await store.access.count_access(NOW, 0) == AccessCounts(0, 0)
    made = await store.access.put_token(token(expires_at=NOW + HOUR), NOW)
    assert made is not None
    await store.access.put_token(token("for ever"), NOW)
    await store.access.put_login(login("of it", token_id=made.id), NOW)
    await store.access.put_login(login(expires_at=NOW + MINUTE), NOW)
    assert await store.access.count_access(NOW, 0) == AccessCounts(2, 2)
    assert await store.access.count_access(NOW + MINUTE, 0) == AccessCounts(2, 1)
    assert await store.access.count_access(NOW + HOUR, 0) == AccessCounts(1, 0)


async def test_the_audit_log_tells_who_did_what_newest_first(store: Store) -> None:
    await store.access.note_audit(ADA, "schedule.add", "report", '{"timing":"daily"}', NOW)
    await store.access.note_audit(Actor("bob", "cli"), "run.cancel", "17", "{}", NOW + SECOND)
    second, first = await store.access.list_audit(AuditFilter())
    assert (first.at, first.who, first.door, first.address) == (from_micros(NOW), "ada", "api", "127.0.0.1")
    assert (first.verb, first.object, first.detail) == ("schedule.add", "report", {"timing": "daily"})
    assert (second.who, second.door, second.address, second.detail) == ("bob", "cli", None, {})
    assert second.id > first.id


@pytest.mark.parametrize(
    ("wanted", "objects"),
    [
        (AuditFilter(who="bob"), ["3"]),
        (AuditFilter(door="cli"), ["3"]),
        (AuditFilter(verb="run.cancel"), ["3", "2"]),
        (AuditFilter(object="1"), ["1"]),
        (AuditFilter(since=NOW + 1), ["3", "2"]),
        (AuditFilter(until=NOW + 1), ["2", "1"]),
        (AuditFilter(since=NOW + 1, until=NOW + 1), ["2"]),
        (AuditFilter(limit=2), ["3", "2"]),
        (AuditFilter(who="nobody"), []),
        (AuditFilter(object="\0"), []),
    ],
)
async def test_the_audit_log_shows_only_what_is_asked_for(
    store: Store, wanted: AuditFilter, objects: list[str]
) -> None:
    await store.access.note_audit(ADA, "run.retry", "1", "{}", NOW)
    await store.access.note_audit(ADA, "run.cancel", "2", "{}", NOW + 1)
    await store.access.note_audit(Actor("bob", "cli"), "run.cancel", "3", "{}", NOW + 2)
    assert [entry.object for entry in await store.access.list_audit(wanted)] == objects


async def test_pages_of_the_audit_log_go_on_where_the_last_one_ended(store: Store) -> None:
    for number in range(5):
        await store.access.note_audit(ADA, "run.retry", str(number), "{}", NOW)
    found: list[str] = []
    before = None
    while entries := await store.access.list_audit(AuditFilter(limit=2, before_id=before)):
        found += [entry.object for entry in entries]
        before = entries[-1].id
    assert found == ["4", "3", "2", "1", "0"]


async def test_an_entry_whose_detail_cannot_be_read_is_shown_as_it_is(store: Store) -> None:
    await store.access.note_audit(ADA, "run.retry", "bad\0name", "not json", NOW)
    (entry,) = await store.access.list_audit(AuditFilter())
    assert entry.detail == {"text": "not json"}


async def test_the_first_of_a_key_goes_on_and_the_others_get_its_answer(store: Store) -> None:
    assert await store.access.begin_request("ada", "k", "print", NOW) is None
    assert await store.access.begin_request("ada", "k", "print", NOW + 1) == Answer("print")
    answer = Answer("print", 201, {"Location": "/api/runs/1"}, b'{"id":1}\x00\xff')
    await store.access.end_request("ada", "k", NOW, answer)
    assert await store.access.begin_request("ada", "k", "other", NOW + 2) == answer
    assert await store.access.begin_request("bob", "k", "print", NOW) is None
    assert await store.access.begin_request("ada", "K", "print", NOW) is None


async def test_a_key_that_is_given_back_can_be_taken_again(store: Store) -> None:
    assert await store.access.begin_request("ada", "k", "print", NOW) is None
    await store.access.end_request("ada", "k", NOW, None)
    assert await store.access.begin_request("ada", "k", "print", NOW) is None


async def test_an_answer_is_kept_for_a_day(store: Store) -> None:
    await store.access.begin_request("ada", "k", "print", NOW)
    await store.access.end_request("ada", "k", NOW, Answer("print", 200, {}, b"done"))
    kept = await store.access.begin_request("ada", "k", "print", NOW + DAY - 1)
    assert kept == Answer("print", 200, {}, b"done")
    assert await store.access.begin_request("ada", "k", "new", NOW + DAY) is None
    assert await store.access.begin_request("ada", "k", "new", NOW + DAY) == Answer("new")


LOST = 5 * MINUTE


async def test_the_key_of_a_process_that_died_is_taken_over_by_the_same_request(store: Store) -> None:
    await store.access.begin_request("ada", "k", "print", NOW)
    assert await store.access.begin_request("ada", "k", "print", NOW + LOST - 1) == Answer("print")
    assert await store.access.begin_request("ada", "k", "other", NOW + LOST) == Answer("print")
    assert await store.access.begin_request("ada", "k", "print", NOW + LOST) is None
    assert await store.access.begin_request("ada", "k", "print", NOW + LOST + 1) == Answer("print")


@pytest.mark.parametrize("late", [None, Answer("print", 200, {}, b"late")])
async def test_who_lost_a_key_can_neither_keep_an_answer_for_it_nor_give_it_back(
    store: Store, late: Answer | None
) -> None:
    await store.access.begin_request("ada", "k", "print", NOW)
    assert await store.access.begin_request("ada", "k", "print", NOW + LOST) is None
    await store.access.end_request("ada", "k", NOW, late)
    assert await store.access.begin_request("ada", "k", "print", NOW + LOST + 1) == Answer("print")
    answer = Answer("print", 201, {}, b"second")
    await store.access.end_request("ada", "k", NOW + LOST, answer)
    await store.access.end_request("ada", "k", NOW, late)
    assert await store.access.begin_request("ada", "k", "print", NOW + DAY) == answer


async def test_of_many_that_take_over_a_key_at_once_one_goes_on(first: Store, second: Store) -> None:
    await first.access.begin_request("ada", "k", "print", NOW)
    begun = await asyncio.gather(
        *(
            one.access.begin_request("ada", "k", "print", NOW + LOST + turn)
            for turn in range(4)
            for one in (first, second)
        )
    )
    assert begun.count(None) == 1


async def test_of_many_that_begin_a_request_at_once_one_goes_on(first: Store, second: Store) -> None:
    for turn in range(10):
        begun = await asyncio.gather(
            *(one.access.begin_request("ada", f"k{turn}", "print", NOW) for one in (first, second) * 4)
        )
        assert begun.count(None) == 1
        assert set(begun) <= {None, Answer("print")}
