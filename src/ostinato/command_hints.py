"""Commands as hints name them: quoted for a shell, so that they can be copied whatever the names in them are.

The command line prints them with what names its database there (`cli/console.py`).
"""

from __future__ import annotations

import shlex

__all__ = ["command", "hint", "with_flags"]


def command(verb: str, *names: object, rest: str = "") -> str:
    """`ostinato schedule enable nightly`. `rest` are flags, written as they are."""
    words = [str(name) for name in names]
    # A name may begin like a flag.
    ends = ["--"] if any(word.startswith("-") for word in words) else []
    return " ".join(
        filter(None, ["ostinato", verb, rest if ends else "", shlex.join([*ends, *words]), "" if ends else rest])
    )


def with_flags(command: str, flags: str) -> str:
    """The same command with those of these flags and their values that it has not: before what ends the flags."""
    words, given = shlex.split(command), shlex.split(flags)
    ends = words.index("--") if "--" in words else len(words)
    for name, value in zip(given[::2], given[1::2], strict=True):
        if name not in words[:ends]:
            words[ends:ends] = [name, value]
            ends += 2
    return shlex.join(words)


def hint(verb: str, *names: object, rest: str = "") -> str:
    """The same as it stands in a sentence."""
    return f"'{command(verb, *names, rest=rest)}'"
