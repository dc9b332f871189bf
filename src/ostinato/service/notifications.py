"""Who is told: channels and rules, and what became of each delivery. And `check`, by which other services find out
whether the channels exist that a policy names.

A channel's URL is a secret: what is answered here has its masked form alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Protocol

from ostinato.clock import Clock, Micros, from_micros, micros_of
from ostinato.command_hints import hint
from ostinato.durations import Duration, duration_text, parse_duration
from ostinato.errors import Conflict, InvalidInput, NotFound, TimingError
from ostinato.logs import get_logger
from ostinato.models.channel_url import check_url, is_reference, mask_url
from ostinato.models.ids import DeliveryId, RuleId
from ostinato.models.notification import (
    RULE_KINDS,
    SELECTABLE,
    Channel,
    ChannelDraft,
    Delivery,
    DeliveryFilter,
    DeliveryState,
    NoticeKind,
    Rule,
    RuleDraft,
    Wait,
    check_channel,
    parse_kinds,
    parse_subscription,
)
from ostinato.models.policy import check_choice
from ostinato.models.quiet import parse_quiet
from ostinato.models.telegram import channel_of
from ostinato.service.audit import audited
from ostinato.service.delivery_waits import DeliveryWaits
from ostinato.service.pages import Page, check_limit, cursor_text, read_cursor
from ostinato.service.projects import ProjectService
from ostinato.service.schedules.drafts import first_due
from ostinato.stores.base import Store
from ostinato.timing import parse_timing
from ostinato.timing.zones import check_zone

__all__ = ["ChannelRule", "ChannelStatus", "NotificationService", "Put", "RemovedChannel", "Sender"]

log = get_logger("ostinato")

_NAMED = 5
"""How many schedules or channels an error names."""
_NONE = "none"
"""What takes a value away."""
_LONGEST_NOTE = 10_000
_CHAT = "telegram:"
"""What the names of the channels begin with that chats are."""


@dataclass(frozen=True, slots=True)
class ChannelStatus:
    """A named way to reach people, and how it fares."""

    name: str
    url: str
    """Its scheme, and its host where that is no secret; a reference (env:NAME, file:PATH) as it is."""
    note: str | None
    quiet: str | None
    """Hours in which nothing is sent, such as 22:00-07:00, in its zone."""
    digest: str | None
    """When what there is to tell is sent, as one message; null if that is at once."""
    zone: str
    cool_down: str
    """How long it hears nothing more of trouble that ends and comes back."""
    created_at: datetime
    sent_at: datetime | None
    """When a message was last sent."""
    failures: int
    """How many tries in a row failed."""
    error: str | None
    """Why the last one did."""
    retry_at: datetime | None
    """When it is tried again."""
    waiting: int = 0
    """How many notices are to be sent there."""
    waits: Wait | None = None
    """Why the first of them is not sent yet, and until when."""


@dataclass(frozen=True, slots=True)
class ChannelRule:
    """What a channel is told, of one project or of all."""

    id: RuleId
    channel: str
    on: Sequence[NoticeKind]
    project: str | None
    """null: of all."""
    digest: str | None
    """When a summary of all runs in its scope is sent."""
    zone: str
    digest_at: datetime | None
    """When the next summary is due."""
    created_at: datetime


@dataclass(frozen=True, slots=True)
class RemovedChannel:
    """A channel that was removed."""

    name: str
    rules: int
    """How many rules went with it."""
    schedules: Sequence[str]
    """The schedules that still name it, and tell it nothing more."""


class Put(StrEnum):
    """What was done to have something as it is wanted."""

    ADDED = "added"
    CHANGED = "changed"
    UNCHANGED = "unchanged"


class Sender(Protocol):
    """Who sends, as far as a verb needs it. The container answers it."""

    @property
    def chats(self) -> Collection[int]:
        """The chats that the settings list."""
        ...

    async def send_test(self, channel: str) -> Delivery:
        """Send a test to a channel, and answer what became of it."""
        ...

    async def check_channel(self, url: str) -> str | None:
        """Why nothing could be sent to such a URL from here; None if nothing speaks against it. It sends nothing."""
        ...

    async def refuse_channel(self, url: str) -> None:
        """InvalidInput, if no machine could send anything to such a URL."""
        ...


def _about_rule(given: dict[str, Any], answer: tuple[object, Put]) -> str | None:
    return None if answer[1] is Put.UNCHANGED else str(given.pop("channel"))


def _about_channel(given: dict[str, Any], answer: tuple[object, Put]) -> str | None:
    """For the audit log, if something was done: the name, and of the URL what may be shown."""
    if answer[1] is Put.UNCHANGED:
        return None
    if given.get("url") is not None:
        given["url"] = mask_url(given["url"])
    return str(given.pop("name"))


class NotificationService:
    """What can be done with channels, rules and deliveries. It remembers the names of channels that it has seen."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        zone: str,
        projects: ProjectService,
        sender: Sender,
    ) -> None:
        self._store = store
        self._clock = clock
        self._zone = zone
        self._projects = projects
        self._sender = sender
        self._waits = DeliveryWaits(store, clock)
        self._known: set[str] = set()
        self._warned: set[str] = set()

    async def list(self) -> Sequence[ChannelStatus]:
        """All channels, by name."""
        return await self._statuses(await self._store.notifications.list_channels())

    async def get(self, name: str) -> ChannelStatus:
        """The channel of this name."""
        return (await self._statuses([await self._stored(name)]))[0]

    async def _statuses(self, channels: Sequence[Channel]) -> Sequence[ChannelStatus]:
        """How they fare, and what waits for them."""
        now = self._clock.now()
        owed = (await self._store.notifications.counts()).deliveries
        found = []
        for channel in channels:
            waiting = owed.get((channel.name, DeliveryState.PENDING), 0)
            waits = await self._waits.first(channel.name) if waiting else None
            found.append(replace(_status(channel, now), waiting=waiting, waits=waits))
        return found

    async def add(
        self,
        name: str,
        url: str | None = None,
        *,
        note: str | None = None,
        quiet: str | None = None,
        digest: str | None = None,
        tz: str | None = None,
        cool_down: Duration | None = None,
    ) -> ChannelStatus:
        """Add a channel, or change what is given of the one of this name; doing it twice changes nothing.

        `quiet`, `digest` and `note` are taken away by "none".
        """
        return (await self.put(name, url, note=note, quiet=quiet, digest=digest, tz=tz, cool_down=cool_down))[0]

    @audited("channel.add", about=_about_channel)
    async def put(
        self,
        name: str,
        url: str | None = None,
        *,
        note: str | None = None,
        quiet: str | None = None,
        digest: str | None = None,
        tz: str | None = None,
        cool_down: Duration | None = None,
    ) -> tuple[ChannelStatus, Put]:
        """The same; says also what was done."""
        check_channel(name)
        chat = name.removeprefix(_CHAT)
        if url is not None and chat != name and url != f"telegram://{chat}":
            raise InvalidInput(f"{name!r} is the channel of a chat", field="name", hint=_chat_hint(chat))
        known = next(iter(await self._store.notifications.list_channels([name])), None)
        if known is None and url is None:
            raise InvalidInput(f"there is no channel {name!r} yet", field="url", hint="give its URL")
        before = known or ChannelDraft(name, "", zone=self._zone)
        zone = before.zone if tz is None else check_zone(tz)
        now = self._clock.now()
        draft = replace(
            before,
            url=before.url if url is None else check_url(url),
            note=_changed(before.note, note, _checked_note),
            quiet=_changed(before.quiet, quiet, lambda text: parse_quiet(text).text),
            digest=_changed(before.digest, digest, lambda text: _checked_digest(text, zone, now)[0]),
            zone=zone,
            cool_down=before.cool_down if cool_down is None else _checked_cool_down(cool_down),
        )
        if known is not None and draft == known:
            return await self.get(name), Put.UNCHANGED
        if draft.url != before.url and not is_reference(draft.url):
            await self._sender.refuse_channel(draft.url)
        is_new = await self._store.notifications.put_channel(draft, now)
        self._known.add(name)
        return await self.get(name), Put.ADDED if is_new else Put.CHANGED

    @audited("channel.remove")
    async def remove(self, name: str, *, force: bool = False) -> RemovedChannel:
        """Delete a channel with its rules; what was still to be sent there is dropped. A Conflict while schedules name
        it, unless forced: then they tell it nothing more."""
        await self._stored(name)
        using = await self._store.notifications.channel_users(name, _NAMED + 1)
        if using and not force:
            raise Conflict(
                f"schedules notify channel {name!r}: {_listed(using)}; change their notify with "
                "'ostinato schedule edit NAME --notify …', or force it: then they tell it nothing more"
            )
        rules = await self._store.notifications.list_rules(name)
        await self._store.notifications.remove_channel(name)
        self._known.discard(name)
        return RemovedChannel(name, len(rules), using)

    @audited("channel.test", answers="delivery")
    async def test(self, name: str) -> Delivery:
        """Send a test message, and wait for what becomes of it; that of a delivery that failed is in its `error`."""
        await self._stored(name)
        return await self._sender.send_test(name)

    async def examine(self, name: str | None = None) -> Mapping[str, str | None]:
        """Why nothing could be sent to each channel from here, or to this one; None if nothing speaks against it."""
        wanted = [await self._stored(name)] if name is not None else await self._store.notifications.list_channels()
        return {channel.name: await self._sender.check_channel(channel.url) for channel in wanted}

    async def _stored(self, name: str) -> Channel:
        for channel in await self._store.notifications.list_channels([name]):
            return channel
        raise NotFound(f"there is no channel {name!r}; 'ostinato notify ls' lists them")

    async def rules(self, channel: str | None = None) -> Sequence[ChannelRule]:
        """All rules, or those of a channel, the oldest first."""
        if channel is not None:
            await self._stored(channel)
        return [_rule(rule) for rule in await self._store.notifications.list_rules(channel)]

    async def add_rule(
        self,
        channel: str,
        on: str | Iterable[str] | None = None,
        *,
        project: str | None = None,
        digest: str | None = None,
        tz: str | None = None,
    ) -> ChannelRule:
        """Tell a channel of these kinds of notices, of one project or of all; a rule of the same channel and project is
        replaced. With `digest`, a summary of all runs is sent at these times; without `on`, only that.
        """
        return (await self.put_rule(channel, on, project=project, digest=digest, tz=tz))[0]

    @audited("rule.add", about=_about_rule)
    async def put_rule(
        self,
        channel: str,
        on: str | Iterable[str] | None = None,
        *,
        project: str | None = None,
        digest: str | None = None,
        tz: str | None = None,
    ) -> tuple[ChannelRule, Put]:
        """The same; says also what was done."""
        await self.check_names([channel], "channel")
        if project is not None:
            await self._projects.get(project)
        kinds = _checked_kinds(on, has_digest=digest is not None)
        zone = self._zone if tz is None else check_zone(tz)
        now = self._clock.now()
        text, due_at = (None, None) if digest is None else _checked_digest(digest, zone, now)
        for rule in await self._store.notifications.list_rules(channel):
            if (rule.project, rule.kinds, rule.digest, rule.zone) == (project, kinds, text, zone):
                return _rule(rule), Put.UNCHANGED
        id, is_new = await self._store.notifications.put_rule(
            RuleDraft(channel, kinds, project, text, zone, due_at), now
        )
        for rule in await self._store.notifications.list_rules(channel):
            if rule.id == id:
                return _rule(rule), Put.ADDED if is_new else Put.CHANGED
        raise NotFound(f"rule {id} was removed in the meantime")

    @audited("rule.remove")
    async def remove_rule(self, id: int) -> None:
        """Delete a rule."""
        if not await self._store.notifications.remove_rule(RuleId(id)):
            raise NotFound(f"there is no rule {id}; 'ostinato notify rule ls' lists them")

    async def log(
        self, channel: str | None = None, *, state: DeliveryState | str | None = None, limit: int = 50
    ) -> Sequence[Delivery]:
        """What was sent, or is to be, the newest first."""
        return (await self.page(channel=channel, state=state, limit=limit)).items

    async def page(
        self,
        *,
        channel: str | None = None,
        state: DeliveryState | str | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> Page[Delivery]:
        """The same list, page by page."""
        wanted = DeliveryFilter(
            channel=channel, state=None if state is None else check_choice(DeliveryState, "state", state)
        )
        before = None if cursor is None else DeliveryId(read_cursor(cursor, wanted, int)[0])
        asked = replace(wanted, before_id=before, limit=check_limit(limit) + 1)
        found = await self._store.notifications.list_deliveries(asked)
        if not found and channel is not None:
            kept = await self._store.notifications.list_deliveries(DeliveryFilter(channel=channel, limit=1))
            if not kept:  # a channel that was removed may have some
                await self._stored(channel)
        more = cursor_text([found[limit - 1].id], wanted) if len(found) > limit else None
        return Page([*await self._waits.of(found[:limit])], more)

    async def check(self, notify: Sequence[str], kept: Sequence[str] = ()) -> None:
        """InvalidInput, unless the `notify` of a policy can be read and its channels exist. What is `kept` of what
        was stored before is not looked at again: its channel may have been removed since."""
        named = [parse_subscription(entry).channel for entry in notify if entry not in kept]
        if not self._known.issuperset(named):
            await self.check_names(named, "notify")

    async def warn(self, notify: Sequence[str]) -> None:
        """The same for what is declared in code, which cannot be asked again: its work matters more than who is told
        of it."""
        try:
            await self.check(notify)
        except InvalidInput as error:
            text = str(error)
            if text not in self._warned:
                self._warned.add(text)
                log.warning("nobody is told there: %s", text)

    async def check_names(self, names: Iterable[str], field: str) -> None:
        """InvalidInput, unless these channels exist."""
        wanted = set(names)
        if not wanted <= self._known:
            self._known = {channel.name for channel in await self._store.notifications.list_channels()}
            await self._add_chats(wanted - self._known)
        for name in sorted(wanted - self._known):
            there = f"the channels are {_listed(sorted(self._known))}" if self._known else "there is none yet"
            chat = name.removeprefix(_CHAT)
            how = f"add it with {hint('notify add', name, 'URL')}" if chat == name else _chat_hint(chat)
            raise InvalidInput(f"there is no channel {name!r}", field=field, hint=f"{there}; {how}")

    async def _add_chats(self, names: Iterable[str]) -> None:
        """Chats on the list of the settings are channels, also before the bot has started for the first time."""
        chats = {channel_of(chat): chat for chat in self._sender.chats}
        for name in names:
            if name in chats:
                draft = ChannelDraft(name, f"telegram://{chats[name]}")
                await self._store.notifications.put_channel(draft, self._clock.now())
                self._known.add(name)


def _status(channel: Channel, now: Micros) -> ChannelStatus:
    return ChannelStatus(
        name=channel.name,
        url=mask_url(channel.url),
        note=channel.note,
        quiet=channel.quiet,
        digest=channel.digest,
        zone=channel.zone,
        cool_down=duration_text(timedelta(microseconds=channel.cool_down)),
        created_at=from_micros(channel.created_at),
        sent_at=None if channel.sent_at is None else from_micros(channel.sent_at),
        failures=channel.failures,
        error=channel.error,
        retry_at=from_micros(channel.retry_at) if channel.retry_at > now else None,
    )


def _rule(rule: Rule) -> ChannelRule:
    return ChannelRule(
        id=rule.id,
        channel=rule.channel,
        on=[kind for kind in SELECTABLE if kind in rule.kinds],
        project=rule.project,
        digest=rule.digest,
        zone=rule.zone,
        digest_at=None if rule.digest_at is None else from_micros(rule.digest_at),
        created_at=from_micros(rule.created_at),
    )


def _changed(before: str | None, given: str | None, checked: Callable[[str], str]) -> str | None:
    """What it is then: as before if nothing is given, and taken away by `none`."""
    if given is None:
        return before
    return None if given in (_NONE, "") else checked(given)


def _checked_note(note: str) -> str:
    if len(note) > _LONGEST_NOTE:
        raise InvalidInput("the note is too long", field="note", hint=f"give at most {_LONGEST_NOTE} characters")
    return note


def _checked_digest(text: str, zone: str, now: Micros) -> tuple[str, Micros]:
    """The text of its timing as it is stored, and when it is due first."""
    timing = parse_timing(text, tz=zone, now=from_micros(now))
    if timing.runs is not None:
        raise TimingError("a digest has no number of runs", text=text)
    if timing.calendars:
        raise TimingError(
            "a digest does not follow a calendar: write its dates, or holidays(…)",
            text=text,
            position=max(text.casefold().find("calendar"), 0),
        )
    due = first_due(timing, now)
    if due is None:
        raise TimingError(f"the digest would never come: {timing.text!r} has no due time after now", text=timing.text)
    return timing.text, due


def _checked_cool_down(given: Duration) -> Micros:
    wanted = parse_duration(given, field="cool_down")
    if not timedelta(0) <= wanted <= timedelta(days=30):
        raise InvalidInput(f"cool_down cannot be {given}", field="cool_down", hint="give 0s to 30d, such as 15m")
    return micros_of(wanted)


def _checked_kinds(on: str | Iterable[str] | None, *, has_digest: bool) -> frozenset[NoticeKind]:
    if on is None:
        return frozenset() if has_digest else RULE_KINDS
    kinds = parse_kinds(on)
    if NoticeKind.ANSWER in kinds:
        raise InvalidInput("an answer is for who asked", field="on", hint=f"use {', '.join(SELECTABLE)}")
    return kinds


def _chat_hint(chat: str) -> str:
    return f'put the chat into [telegram.chats] of ostinato.toml: "{chat}" = "viewer"'


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMED]) + (", …" if len(names) > _NAMED else "")
