"""`ostinato completion`: the script that completes commands and flags in a shell."""

from __future__ import annotations

from typing import Literal

from ostinato.cli.console import emit

__all__ = ["completion"]


def completion(shell: Literal["bash", "zsh", "fish"], /) -> None:
    """Print the completion script for a shell.

    Parameters
    ----------
    shell
        Where the script goes: bash, ~/.local/share/bash-completion/completions/ostinato; zsh, _ostinato in a folder
        of $fpath; fish, ~/.config/fish/completions/ostinato.fish.
    """
    from ostinato.cli.main import app

    emit(app.generate_completion(shell=shell))
