"""The body of an answer: unpacked, decoded and written as it comes, however long it is.

Of what is no text only the size is told. The beginning is kept: for the result if it is JSON, and for reasons.
"""

from __future__ import annotations

import codecs
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from ostinato.execution.executors.http.request import Refusal, Trouble
from ostinato.execution.secrets import NO_SECRETS, Mask
from ostinato.models.nesting import MOST_DEPTH, is_deeper
from ostinato.plurals import counted

__all__ = ["Body"]

MOST_JSON = 64 * 1024
"""How long a JSON body may be to become part of the result."""
_STEP = 64 * 1024
_TEXT = re.compile(
    r"text/.*|message/.*|.*[/+](json|xml|yaml)|application/"
    r"(x-ndjson|ndjson|jsonl|json-seq|javascript|ecmascript|x-javascript|x-yaml|toml|graphql|sql|x-sh|x-www-form-urlencoded)"
)
_NOT_CHARSETS = frozenset({"idna", "punycode", "unicode_escape", "raw_unicode_escape", "undefined"})
_LONGEST_LINE = 200


class Body:
    """Takes the pieces of one body."""

    def __init__(
        self,
        headers: Mapping[str, str],
        write: Callable[[str], None],
        mask: Mask = NO_SECRETS,
        most_unpacked: int = 256 * 1024 * 1024,
    ) -> None:
        """`most_unpacked`: how much a packed body may unpack to. A small one could go on for ever."""
        self._mask = mask
        self.type = _type(headers)
        self.size = 0
        """In bytes, unpacked."""
        self._write = write
        packing = headers.get("content-encoding", "").strip().lower().removeprefix("x-")
        self._unpack = _Packed(packing, most_unpacked) if packing in ("gzip", "deflate") else None
        is_readable = self._unpack is not None or packing in ("", "identity")
        self._is_text = is_readable and (self.type is None or bool(_TEXT.fullmatch(self.type)))
        self._charset = _charset(headers)
        self._decoder = codecs.getincrementaldecoder(self._charset)("backslashreplace")
        self._begin = bytearray()

    def adding(self, piece: bytes) -> Iterator[None]:
        """The next piece, as it came, in steps: a small one may unpack to much, and others want to go on meanwhile."""
        for data in (piece,) if self._unpack is None else self._unpack.add(piece):
            if not self.size and self.type is None and b"\0" in data:
                self._is_text = False
            self.size += len(data)
            self._begin += data[: MOST_JSON + 1 - len(self._begin)]
            if self._is_text:
                self._write(self._decoder.decode(data))
            yield

    def end(self) -> None:
        """That was all."""
        if self._unpack is not None:
            self._unpack.end()
        if self._is_text:
            self._write(self._decoder.decode(b"", final=True))
        elif self.size:
            self._write(f"ostinato: {counted(self.size, 'byte')} of {self.type or 'unknown type'}, not shown\n")

    @property
    def json(self) -> Any:
        """What it says, if it is JSON and not too long."""
        begin = bytes(self._begin)
        labelled = self.type is not None and self.type.endswith(("/json", "+json"))
        if not self._is_text or len(begin) > MOST_JSON or not (labelled or begin.lstrip()[:1] in (b"{", b"[")):
            return None
        if is_deeper(begin, MOST_DEPTH - 1):  # the result has it as one of its fields
            return None
        try:
            return msgspec.json.decode(begin.removeprefix(codecs.BOM_UTF8))
        except (msgspec.DecodeError, ValueError, RecursionError):
            return None

    @property
    def gist(self) -> str:
        """What it says on one line, as far as that helps: nothing of a page or of what is no text."""
        if not self._is_text or (self.type is not None and self.type.endswith(("html", "xml"))):
            return ""
        text = ""
        found = self.json
        if isinstance(found, dict):
            said = (found.get(name) for name in ("detail", "message", "error_description", "error", "title"))
            text = next((value for value in said if isinstance(value, str) and value.strip()), "")
        if not text:
            is_cut = self.size > len(self._begin)
            decoder = codecs.getincrementaldecoder(self._charset)("backslashreplace")
            text = self._mask.hide_cut(decoder.decode(self._begin, final=not is_cut), end=is_cut)
        line = next((line for line in self._mask.hide(text).splitlines() if line.strip()), "")
        line = "".join(letter if letter.isprintable() else " " for letter in line)
        return self._mask.shortened(line, _LONGEST_LINE)


class _Packed:
    """Undoes gzip and deflate in small steps, so that no piece grows beyond them."""

    def __init__(self, name: str, most: int) -> None:
        self._name = name
        self._most = most
        self._zlib = zlib.decompressobj(wbits=31 if name == "gzip" else 15)
        self._unpacked = 0
        self._has_begun = False

    def add(self, piece: bytes) -> Iterator[bytes]:
        while piece:
            try:
                data = self._step(piece)
            except zlib.error as error:
                raise Trouble(f"the response body cannot be decompressed: it is not {self._name} ({error})") from error
            piece = self._zlib.unconsumed_tail
            if self._zlib.eof and not piece:
                # One packed file may follow another; zeros may follow the last.
                piece = self._zlib.unused_data.lstrip(b"\0") if self._name == "gzip" else b""
                if piece:
                    self._zlib = zlib.decompressobj(wbits=31)
            self._unpacked += len(data)
            if self._unpacked > self._most:
                raise Refusal(
                    f"the response body decompresses to more than {self._most // 1024**2} MB, which is too much"
                )
            if data:
                yield data

    def _step(self, piece: bytes) -> bytes:
        was_begun, self._has_begun = self._has_begun, True
        try:
            return self._zlib.decompress(piece, _STEP)
        except zlib.error:
            if was_begun or self._name == "gzip":
                raise
            # Some mean by deflate the bare stream, without its frame.
            self._zlib = zlib.decompressobj(wbits=-15)
            return self._zlib.decompress(piece, _STEP)

    def end(self) -> None:
        if self._has_begun and not self._zlib.eof:
            raise Trouble(f"the response body cannot be decompressed: its {self._name} data broke off")


def _type(headers: Mapping[str, str]) -> str | None:
    """The media type, without its parameters; None if there is none."""
    said = headers.get("content-type", "").partition(";")[0].strip().lower()
    return said if re.fullmatch(r"[\w.+-]+/[\w.+-]+", said) and len(said) <= 100 else None


def _charset(headers: Mapping[str, str]) -> str:
    found = re.search(r";\s*charset\s*=\s*\"?([\w.:+-]{1,40})", headers.get("content-type", ""), re.IGNORECASE)
    if found is None:
        return "utf-8"
    try:
        name = codecs.lookup(found[1]).name
        b"x".decode(name, "replace")
    except (LookupError, ValueError):  # unknown, or no encoding of text
        return "utf-8"
    return "utf-8" if name.replace("-", "_") in _NOT_CHARSETS else name
