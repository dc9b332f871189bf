"""Secrets: references that are resolved when work starts, and the mask that hides what they stand for.

`env:NAME` is a variable of the engine's environment, `file:PATH` the content of a file. Neither is ever stored. What is
shown of a run is hidden first and cut then; what had to be cut before says so by a `…`, and its ends are looked at.
"""

from __future__ import annotations

import base64
import json
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import msgspec

from ostinato.errors import InvalidInput
from ostinato.execution.resources import is_exhausted

__all__ = ["NO_SECRETS", "Mask", "embedded", "literal_secrets", "resolve_all"]

HIDDEN = "***"
CUT = "…"
"""Stands where a text was cut."""
MOST_OF_FILE = 64 * 1024
"""How many bytes a file with a secret may have."""
_SHORTEST = 4
"""What is shorter cannot be told from ordinary text, and is not hidden."""
_SHORTEST_LITERAL = 8
"""What is shorter and stands in a header as it is may be an ordinary word: `dark` in a cookie."""
_SHORTEST_ENCODED = 8
"""From this length on, its encoded forms are looked for too."""
_MANY = 50
"""From as many forms on, those of 16 letters and more are looked for by eight of their letters, all at once."""
_LONG, _GRAM = 16, 8
_STEP = _LONG - _GRAM + 1
"""Whoever looks at eight letters in so many steps meets every text of 16 letters."""
_LOOKED_AT = 50
"""How many times the length of a short line is read to make it: nobody reads megabytes for two hundred letters."""
_MOST_MARKS = 1_000
_REFERENCE = re.compile(r"(env|file):(.+)", re.DOTALL)
_IN_HEADER = re.compile(r"(\S+ +)?(env|file):(.+)", re.DOTALL)
_SECRET_HEADER = re.compile(r"auth|cookie|credential|key|pass|secret|session|signature|token", re.IGNORECASE)
_EMBEDDED = re.compile(r"(?<![A-Za-z0-9_])(?:env:[A-Za-z_]\w*|file:(?!//)[\w.~/-]+)")


class Mask:
    """Hides the values of secrets in text. A secret of several lines is hidden line by line."""

    __slots__ = ("_by_gram", "_secrets", "_short")

    def __init__(self, secrets: Iterable[str]) -> None:
        whole = set(secrets)
        lines = {line.strip() for secret in whole for line in secret.splitlines()}
        written = {form for line in lines if len(line) >= _SHORTEST for form in _forms(line)}
        written |= {form for secret in whole if len(secret) >= _SHORTEST_ENCODED for form in _in_base64(secret)}
        # The longest first: one secret may be the beginning of another.
        self._secrets = sorted(written, key=len, reverse=True)
        self._short = self._secrets
        self._by_gram: dict[str, list[str]] = {}
        if len(self._secrets) > _MANY:
            self._short = [secret for secret in self._secrets if len(secret) < _LONG]
            for secret in self._secrets[: len(self._secrets) - len(self._short)]:
                for at in range(_STEP):
                    self._by_gram.setdefault(secret[at : at + _GRAM], []).append(secret)

    @property
    def has_any(self) -> bool:
        """Whether there is anything to hide."""
        return bool(self._secrets)

    def hide(self, text: str) -> str:
        """The text without the secrets."""
        found = self._found(text)
        if len(found) <= 1:
            return text.replace(found[0], HIDDEN) if found else text
        return _covered(text, _whole(text, found))

    def _found(self, text: str) -> list[str]:
        """The secrets that stand in it."""
        perhaps = self._short
        if self._by_gram:
            # A key of a thousand lines would be looked for in a megabyte a thousand times.
            seen = {text[at : at + _GRAM] for at in range(0, len(text), _STEP)} & self._by_gram.keys()
            perhaps = [*perhaps, *{secret for gram in seen for secret in self._by_gram[gram]}]
        return [secret for secret in perhaps if secret in text]

    def hide_cut(self, text: str, *, begin: bool = False, end: bool = False) -> str:
        """The same for a text whose begin or end was cut off: what is left of a secret there is hidden too.

        As far as it can be told: from four letters on.
        """
        if not begin and not end:
            return self.hide(text)
        if begin and any(_SHORTEST <= len(text) < len(secret) and text in secret for secret in self._secrets):
            return HIDDEN
        return self._hide_all(text, [0] if begin else [], [len(text)] if end else [])

    def hide_in(self, text: str | None) -> str | None:
        """What may be missing, and may have been cut, where a `…` stands in it, by who does not know the secrets."""
        if text is None or not self._secrets:
            return text
        marks = [found.span() for found in re.finditer(rf"\s*{CUT}\s*", text)][-_MOST_MARKS:]
        return self._hide_all(text, [end for _, end in marks], [begin for begin, _ in marks])

    def _hide_all(self, text: str, begins: Sequence[int], ends: Sequence[int]) -> str:
        """Hide whole secrets, ends of them that stand at `begins`, and beginnings of them that stand at `ends`."""
        spans = list(_whole(text, self._found(text)))
        for secret in self._secrets:
            if len(ends) == 1 or (ends and secret[:_SHORTEST] in text):
                spans += [(at, place) for place in ends if (at := _begun(text, secret, place)) >= 0]
            if len(begins) == 1 or (begins and secret[-_SHORTEST:] in text):
                spans += [(place, at) for place in begins if (at := _ended(text, secret, place)) >= 0]
        return _covered(text, spans)

    def shortened(self, text: str, most: int) -> str:
        """The text without secrets, on one line of at most `most` letters: hidden first, and cut then."""
        looked_at = text[: _LOOKED_AT * most]
        is_cut = len(looked_at) < len(text)
        line = " ".join(self.hide_cut(looked_at, end=is_cut).split())
        return line[: most - 1] + CUT if is_cut or len(line) > most else line

    def hide_json(self, text: str) -> str:
        """JSON without the secrets in its texts; its numbers stay, so that it stays JSON."""
        if (hidden := self.hide(text)) == text:
            return text
        try:
            return msgspec.json.encode(self._hidden(msgspec.json.decode(text))).decode()
        except (ValueError, RecursionError):
            return hidden  # JSON that others read and we do not, as 1e400

    def _hidden(self, value: Any) -> Any:
        match value:
            case str():
                return self.hide(value)
            case list():
                return [self._hidden(item) for item in value]
            case dict():
                return {self.hide(name): self._hidden(item) for name, item in value.items()}
            case _:
                return value


def _forms(secret: str) -> set[str]:
    """How a line of a secret may look in what is shown: in JSON, where it is not UTF-8, on one line, in a URL."""
    data = secret.encode("utf-8", "surrogateescape")
    shown = data.decode("utf-8", "backslashreplace")
    stored = secret.encode("utf-8", "backslashreplace").decode()
    forms = {shown, stored, msgspec.json.encode(shown)[1:-1].decode(), json.dumps(shown)[1:-1], " ".join(shown.split())}
    if len(secret) >= _SHORTEST_ENCODED:
        forms |= {quote(data, safe=""), quote(data), quote_plus(data)}
    return forms


def _in_base64(secret: str) -> set[str]:
    """A secret alone, as `echo` hands it on, and what is its own of it among other text: `user:secret`."""
    data = secret.encode("utf-8", "surrogateescape")
    forms: set[str] = set()
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        forms |= {encode(data + end).decode().rstrip("=") for end in (b"", b"\n")}
        for before in range(3):
            # A letter stands for six bits: the outer ones may have some of a neighbour, too.
            encoded = encode(bytes(before) + data).decode().rstrip("=")
            forms.add(encoded[before + 1 if before else 0 : len(encoded) - bool((before + len(data)) % 3)])
    return forms


def _whole(text: str, secrets: Iterable[str]) -> Iterator[tuple[int, int]]:
    """Where the secrets stand."""
    for secret in secrets:
        at = text.find(secret)
        while at >= 0:
            yield at, at + len(secret)
            at = text.find(secret, at + len(secret))


def _begun(text: str, secret: str, end: int) -> int:
    """Where the longest beginning of a secret begins that stands right before `end`; -1 if there is none."""
    head = secret[:_SHORTEST]
    at = text.find(head, max(0, end - len(secret) + 1), end)
    while at >= 0 and not secret.startswith(text[at:end]):
        at = text.find(head, at + 1, end)
    return at


def _ended(text: str, secret: str, begin: int) -> int:
    """Where the longest end of a secret ends that stands right behind `begin`; -1 if there is none."""
    tail = secret[-_SHORTEST:]
    at = text.rfind(tail, begin, begin + len(secret) - 1)
    while at >= 0 and not secret.endswith(text[begin : at + _SHORTEST]):
        at = text.rfind(tail, begin, at + _SHORTEST - 1)
    return at if at < 0 else at + _SHORTEST


def _covered(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """The text with these places hidden, as one where they overlap: a secret may stand within another."""
    pieces: list[str] = []
    done = 0
    for begin, end in sorted(spans):
        if begin >= done:
            pieces += [text[done:begin], HIDDEN]
        done = max(done, end)
    return "".join([*pieces, text[done:]])


NO_SECRETS = Mask(())


def resolve_all(
    values: Mapping[str, str], environment: Mapping[str, str], folder: Path, *, headers: bool = False
) -> tuple[dict[str, str], list[str]]:
    """The values with their references resolved, and the secrets that came to light.

    In headers a word may stand before the reference: `Bearer env:TOKEN`. InvalidInput says what is missing and where.
    It reads files, and a file may be far away: call it beside the loop.
    """
    resolved: dict[str, str] = {}
    secrets: list[str] = []
    for name, value in values.items():
        found = _IN_HEADER.fullmatch(value) if headers else _REFERENCE.fullmatch(value)
        if found is None:
            resolved[name] = value
            continue
        *before, kind, where = found.groups()
        secret = _from_environment(name, where, environment) if kind == "env" else _from_file(name, where, folder)
        resolved[name] = f"{before[0] or ''}{secret}" if before else secret
        secrets.append(secret)
    return resolved, secrets


def literal_secrets(headers: Mapping[str, str], *, by_name: bool = True) -> list[str]:
    """What stands in headers as it is and is a secret by the header's name: the value, and the parts of it that are.

    Not `by_name`: whatever their names are."""
    secrets: list[str] = []
    for name, value in headers.items():
        if (not by_name or _SECRET_HEADER.search(name)) and not _IN_HEADER.fullmatch(value):
            scheme, _, credentials = value.strip().partition(" ")
            cookies = [part.partition("=")[2] for part in value.split(";")] if "cookie" in name.lower() else []
            secrets += [value, credentials if scheme.isalnum() else "", *cookies]
    return [secret for secret in secrets if len(secret) >= _SHORTEST_LITERAL]


def embedded(values: Mapping[str, str], *, headers: bool = False) -> dict[str, str]:
    """By their names, what looks like a reference within a value: it stays as it is, which may not be meant."""
    whole = _IN_HEADER if headers else _REFERENCE
    found = {name: _EMBEDDED.search(value) for name, value in values.items() if not whole.fullmatch(value)}
    return {name: reference[0] for name, reference in found.items() if reference is not None}


def _from_environment(name: str, where: str, environment: Mapping[str, str]) -> str:
    try:
        return environment[where]
    except KeyError:
        raise InvalidInput(
            f"{name} is env:{where}, but the engine's environment has no {where}",
            field=name,
            hint=f"set {where} where the engine is started",
        ) from None


def _from_file(name: str, where: str, folder: Path) -> str:
    path = folder / where
    try:
        path = folder / Path(where).expanduser()
        return _content(path).decode().rstrip("\r\n")
    except (OSError, ValueError, RuntimeError) as error:
        if is_exhausted(error):
            raise  # nothing is wrong with the file
        match error:
            case OSError():
                why = error.strerror or str(error)
            case UnicodeDecodeError():
                why = "it is not UTF-8"
            case RuntimeError():
                why = f"there is no home folder of {Path(where).parts[0]}"
            case _:
                why = str(error)
        raise InvalidInput(
            f"{name} is file:{where}, but {path} cannot be read: {why}", field=name, hint="fix the path or the file"
        ) from None


def _content(path: Path) -> bytes:
    """Of a plain file and of no more: a pipe would keep us waiting, a device never end."""
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    opened = os.open(path, flags)
    try:
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            raise ValueError("it is not a plain file")
        with open(opened, "rb", closefd=False) as file:
            data = file.read(MOST_OF_FILE + 1)
    finally:
        os.close(opened)
    if len(data) > MOST_OF_FILE:
        raise ValueError(f"it has more than {MOST_OF_FILE // 1024} KB, which is too large for a secret")
    return data
