"""Which programs run a text: how each is given it, and what cannot be one."""

from __future__ import annotations

from typing import Any

import pytest

from ostinato import Shell
from ostinato.errors import InvalidInput
from ostinato.models.interpreters import LONGEST_ARGUMENT, calling


@pytest.mark.parametrize(
    ("interpreter", "before"),
    [
        *((shell, ("-c",)) for shell in ("sh", "bash", "/bin/dash", "ksh93", "/opt/zsh-5.9", "fish")),
        *((python, ("-c",)) for python in ("python", "python3", "python3.12", "/srv/venv/bin/python3", "pypy3")),
        *((other, ("-e",)) for other in ("node", "nodejs", "perl", "perl5.36.0", "ruby3.2")),
        ("php8.2", ("-r",)),
        ("pwsh", ("-NoProfile", "-Command")),
        *((unknown, ()) for unknown in ("lua", "Rscript", "/opt/mine", "bashful")),
    ],
)
def test_an_interpreter_is_given_its_text_as_it_takes_one(interpreter: str, before: tuple[str, ...]) -> None:
    assert calling(interpreter).before == before


@pytest.mark.parametrize("text", ["-x", "--version", "+x"])
def test_a_text_is_no_option_of_a_shell(text: str) -> None:
    for shell in ("sh", "bash", "/bin/dash", "ksh93", "mksh", "zsh"):
        assert calling(shell).words(text) == ("-c", "--", text)
        assert calling(shell).words(f"echo {text}") == ("-c", f"echo {text}")
    # To these the text is the argument of the option before it.
    assert calling("fish").words(text) == calling("python3").words(text) == ("-c", text)
    assert calling("perl").words(text) == ("-e", text)


@pytest.mark.parametrize(
    "wrong",
    ["", " ", "bash -e", "-c", "./mine", "bin/bash", "~/mine", "/", "/bin/", "/a\0b", "/a\nb", "ü", 3, ["bash"]],
)
def test_what_is_neither_a_name_nor_a_whole_path_is_refused(wrong: Any) -> None:
    with pytest.raises(InvalidInput, match="without arguments") as refused:
        Shell("true", interpreter=wrong)
    assert refused.value.field == "interpreter"


def test_a_list_takes_no_interpreter() -> None:
    with pytest.raises(InvalidInput, match="a list of words runs without a shell") as refused:
        Shell(["true"], interpreter="bash")
    assert refused.value.field == "interpreter"


def test_a_text_that_its_interpreter_cannot_be_given_is_refused_where_it_is_written() -> None:
    longest = "#" * LONGEST_ARGUMENT
    Shell(longest, interpreter="python3")
    Shell(longest + "#", interpreter="sh")
    Shell(longest + "#")
    with pytest.raises(InvalidInput, match="python3 can be given a text of 131,071 bytes, and this one has 131,072"):
        Shell(longest + "#", interpreter="python3")
    with pytest.raises(InvalidInput, match="this one has 262,142"):
        Shell("ü" * LONGEST_ARGUMENT, interpreter="python3")
