"""Why a call of a command line failed, as far as it has a name, and when it may be called again, pure.

Here are all the texts by which command lines say things that they have no field for. agent_outcome.py asks.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from ostinato.clock import Micros
from ostinato.execution.executors.agent.agent_stream import AgentStream
from ostinato.models.states import Cause

__all__ = ["BRIEF", "has_failed", "named_cause", "says_vanished", "waits_for"]

BRIEF = 500
_SEARCHED = 2_000
_LINES = 5
"""What a CLI says of itself is short, and said last; what is longer, or stands before it, is the work's own."""

# An agent speaks of logins all the time: of those of git, npm and its other tools. So these are the forms of whole
# lines, from their beginning, in which command lines say that they are not logged in themselves.
_BEFORE = r"\W*(?:(?:\w*error|fatal|api|[\d:.TZ-]+)\W+)*"
_LOGGED_OUT = re.compile(
    rf"^{_BEFORE}(?:"
    # Claude Code
    r"not logged in(?=\s*(?:$|[·.:,;-]))|login expired|invalid api key(?=\s*(?:$|[·.,;]))"
    r"|oauth (?:token|session)(?: has| was)?(?: been)? (?:expired|revoked)"
    r"|failed to authenticate[.:] (?:oauth|api error)|invalid (?:x-api-key|bearer token|authentication credentials)"
    # Codex
    r"|unexpected status 401 unauthorized|exceeded retry limit, last status: 401|failed to refresh token: 40[01]"
    r"|your access token could not be refreshed|(?:missing|incorrect|no) api key(?: provided)?(?=\s*(?:$|[.:·]))"
    # Gemini, opencode, and what more than one of them prints
    r"|please set an auth method|api key not valid|unauthorized: \{|upstream request failed: invalid credential"
    r"|no authentication is configured|could not resolve authentication method"
    r"|(?:please )?run [`'\"]?(?:/login\b|(?:claude|codex|gemini|opencode|copilot|cursor-agent)(?: auth)? login\b)"
    r")"
    rf"|^\W*(?:error\W+)?api error: (?:401\b|\d+ \{{.{{0,80}}authentication_error)",
    re.IGNORECASE | re.MULTILINE,
)
_NO_CREDIT = re.compile(r"credits ?error|insufficient balance|model ?error", re.IGNORECASE)
"""What opencode's own gateway says with status 401 to somebody who is logged in."""
_RATE_LIMITED = re.compile(
    r"rate[ _-]?limit|too many requests|\b(?:status|error|http)\b[^\w\n]{0,3}\b429\b|resource[_ ]exhausted"
    r"|\b(?:usage|session|weekly|daily|hourly) limit|hit your .{0,40}\blimit\b"
    r"|quota (?:is )?(?:exceeded|exhausted)|exceeded .{0,40}\bquota|exhausted your",
    re.IGNORECASE,
)
_OVERLOADED = re.compile(
    r"overloaded|service[ _]unavailable|internal[ _]server[ _]error|bad gateway|gateway time-?out"
    r"|\bat capacity\b|capacity[_ ]exhausted|experiencing high demand"
    r"|\b(?:status|error)\b[^\w\n]{0,3}\b(?:50[0-4]|52[0-9])\b",
    re.IGNORECASE,
)
_NO_NETWORK = re.compile(
    r"\bE(?:NOTFOUND|AI_AGAIN|CONNREFUSED|CONNRESET|TIMEDOUT|NETUNREACH|HOSTUNREACH|PIPE)\b|getaddrinfo|dns error"
    r"|name (?:or service not known|resolution)|(?:could not|couldn't|failed to) resolve host"
    r"|network (?:is unreachable|error)|fetch failed|failed to fetch|failedtoopensocket|error sending request"
    r"|connection (?:error|failed|refused|reset|lost)|unable to connect|socket hang up|stream disconnected",
    re.IGNORECASE,
)
_VANISHED = re.compile(
    r"no (?:previous )?(?:conversation|session|rollout|thread|saved session)s?\b.{0,40}\bfound"
    r"|(?:conversation|session|thread)\b.{0,80}\b(?:not found|does not exist)"
    r"|invalid session identifier",
    re.IGNORECASE,
)
_CODES: dict[Cause, frozenset[str]] = {
    Cause.LOGGED_OUT: frozenset(
        {
            *("authentication_failed", "authentication_error", "oauth_org_not_allowed"),
            *("FatalAuthenticationError", "UnauthorizedError", "ProviderAuthError"),
        }
    ),
    Cause.RATE_LIMITED: frozenset({"rate_limit", "rate_limit_error", "RetryableQuotaError", "TerminalQuotaError"}),
    Cause.OVERLOADED: frozenset({"overloaded", "overloaded_error", "server_error"}),
}
_TEXTS = {
    Cause.RATE_LIMITED: _RATE_LIMITED,
    Cause.OVERLOADED: _OVERLOADED,
    Cause.NO_NETWORK: _NO_NETWORK,
}

_EPOCH = re.compile(r"\|\s*(\d{10})(?:\d{3})?\b")
"""«Claude AI usage limit reached|1760000000»"""
_IN = re.compile(r"(?:retry|again|resets?) (?:in|after) ((?:\d+(?:\.\d+)?\s?(?:ms|[dhms][a-z]*)[ ,]*)+)", re.IGNORECASE)
"""«Please retry in 34.07s», «will reset after 8h30m», «reset in 2 hours 5 minutes»"""
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s?(ms|[dhms])", re.IGNORECASE)
_AT = re.compile(r"[Tt]ry again at (?:([A-Z][a-z]{2} \d{1,2})(?:st|nd|rd|th), (\d{4}) )?(\d{1,2}:\d{2} [AP]M)")
"""«try again at 3:42 PM», «try again at Mar 5th, 2026 3:42 PM», in the zone of the machine"""
_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3_600, "d": 86_400}
_LONGEST = timedelta(days=8)
"""No limit that is known lasts longer than a week."""


def has_failed(stream: AgentStream, status: int) -> bool:
    """Whether a call that ended with this exit status is a failure."""
    return stream.is_error or status != 0 or not stream.answered


def says_vanished(stream: AgentStream) -> bool:
    """Whether it complains that a conversation is not there."""
    return _VANISHED.search(_complaint(stream)) is not None


def named_cause(stream: AgentStream) -> Cause | None:
    """Why it failed, if that has a name. An agent that has answered may speak as it likes of logins and limits: then
    only what it says of its failure counts."""
    codes = stream.codes if stream.answered else stream.codes | {stream.retrying}
    for cause, names in _CODES.items():
        if codes & names or (stream.status is not None and _of_status(stream) is cause):
            return cause
    if stream.answered and not stream.is_error and not stream.is_plain:
        return None
    complaint = _complaint(stream)
    # Its first line, for behind it an agent may quote whatever it has met.
    if _LOGGED_OUT.search(complaint.partition("\n")[0] if stream.is_error else complaint):
        return Cause.LOGGED_OUT
    return next((cause for cause, text in _TEXTS.items() if text.search(complaint)), None)


def waits_for(stream: AgentStream, now: Micros) -> timedelta | None:
    """How long the other side wants to be left alone, as far as it says so."""
    wait = _wait(stream, now / 1_000_000)
    if wait is None or not 0 < wait <= _LONGEST.total_seconds():
        return None
    return timedelta(seconds=wait)


def _of_status(stream: AgentStream) -> Cause | None:
    status = stream.status or 0
    if status == 401:
        return None if _NO_CREDIT.search(_complaint(stream)) else Cause.LOGGED_OUT
    if status == 429:
        return Cause.RATE_LIMITED
    return Cause.OVERLOADED if status >= 500 else None


def _complaint(stream: AgentStream) -> str:
    """What is said of a failure: by the result, or else by the last lines, and by a text that is all there is."""
    if stream.is_error and stream.text:
        return stream.text[:_SEARCHED]
    printed = stream.text if stream.is_plain and len(stream.text) <= BRIEF else ""
    return "\n".join([printed, stream.retrying, *list(stream.last_lines)[-_LINES:]])


def _wait(stream: AgentStream, now: float) -> float | None:
    """In seconds."""
    if stream.limit_ends is not None:
        return stream.limit_ends - now
    if stream.retry_after is not None:
        return stream.retry_after
    complaint = _complaint(stream)
    if found := _EPOCH.search(complaint):
        return int(found[1]) - now
    if found := _IN.search(complaint):
        return sum(float(amount) * _SECONDS[unit.lower()] for amount, unit in _AMOUNT.findall(found[1]))
    return _until(found, now) if (found := _AT.search(complaint)) else None


def _until(named: re.Match[str], now: float) -> float | None:
    day = f"{named[1]} {named[2]}" if named[1] else f"{_here(now):%b %d %Y}"
    try:
        moment = datetime.strptime(f"{day} {named[3]}", "%b %d %Y %I:%M %p").astimezone()
    except ValueError:
        return None
    return moment.timestamp() + 60 - now  # it names the minute, and not the second


def _here(now: float) -> datetime:
    """In the zone of the machine, as its command lines print times."""
    return datetime.fromtimestamp(now, UTC).astimezone()
