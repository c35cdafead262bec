"""A job's command line as people know it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

_TORCHRUN = ("-m", "torch.distributed.run")
_OURS = ("--standalone", "--log-dir=", "--redirects=")


def short_command(command: Sequence[str]) -> str:
    """The command in one line, its program by name: torchrun without the options that every run of ours has."""
    if tuple(command[1:3]) != _TORCHRUN:
        return " ".join([*(PurePath(program).name for program in command[:1]), *command[1:]])
    return " ".join(["torchrun", *(word for word in command[3:] if not word.startswith(_OURS))])
