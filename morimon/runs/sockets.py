"""Where a run's socket lies: in a folder that only we can enter, under a path that the kernel's 107 bytes can hold."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

MAX_PATH_BYTES = 107
"""sun_path holds 108 bytes, the last one zero."""
_LONGEST_NAME = "/ffffff.sock"


class SocketFolderError(Exception):
    """No folder for sockets can be had; the message is a sentence that says what to do."""


def socket_folder() -> Path:
    """$XDG_RUNTIME_DIR/morimon, or morimon-UID in the temporary directory: made with mode 0700, verified to be ours.

    A folder of that name which somebody else owns or may enter is refused: whoever can replace a socket can pose as
    the hub.
    """
    refused = []
    for path in _candidates():
        if len(os.fsencode(path) + _LONGEST_NAME.encode()) > MAX_PATH_BYTES:
            refused.append(f"{path} is too long for a Unix socket")
            continue
        try:
            path.mkdir(mode=0o700, exist_ok=True)
            found = path.lstat()
        except OSError as error:
            refused.append(f"{path} cannot be made ({error.strerror})")
            continue
        if not stat.S_ISDIR(found.st_mode):
            refused.append(f"{path} is no folder")
        elif found.st_uid != os.getuid():
            refused.append(f"{path} belongs to user {found.st_uid}, not to us")
        elif found.st_mode & 0o077:
            refused.append(f"others may enter {path} (mode {stat.S_IMODE(found.st_mode):04o})")
        else:
            return path
    reasons = "; ".join(refused)
    raise SocketFolderError(
        f"There is no safe folder for the run's socket: {reasons}. Set XDG_RUNTIME_DIR to one of your own."
    )


def socket_path(folder: Path, run_id: str) -> Path:
    """The socket of one run."""
    return folder / f"{run_id}.sock"


def _candidates() -> list[Path]:
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    ours = f"morimon-{os.getuid()}"
    temporary = dict.fromkeys([Path(tempfile.gettempdir()) / ours, Path("/tmp") / ours])  # noqa: S108 - verified
    return ([Path(runtime) / "morimon"] if runtime else []) + list(temporary)
