"""What file names and process names say: rank and time stamp.

Forms in use: trace_rank_0_0821_170932.json, trace_intranode_rank3_0821_171401.json, dispatch_rank3.json,
trace_rank__.json and trace_rank__0821_170932.json (no rank), any of them with .gz or .zst.
"""

from __future__ import annotations

import os
import re
from pathlib import PurePath

from morimon.trace.model import FileName

SUFFIXES = re.compile(r"(?:\.pt)?(?:\.trace)?(?:\.(?:json|gz|zst|zstd|pftrace))*$", re.IGNORECASE)
STAMP = re.compile(r"(?<!\d)(\d{4}_\d{6})(?!\d)")
RANK = re.compile(r"(?<![a-z])rank[\s_.:-]?(\d{1,6})(?!\d)", re.IGNORECASE)
WORD = re.compile(r"(?<![a-z])rank(?![a-z])[\s_.:-]*", re.IGNORECASE)


def stem(path: str | PurePath) -> str:
    """The file's name without what says how it is written and packed."""
    name = PurePath(path).name
    return SUFFIXES.sub("", name) or name


def readable(path: str | PurePath) -> str:
    """A path as text that can be written anywhere: bytes of a name that are no UTF-8 become U+FFFD."""
    return os.fsencode(path).decode("utf-8", "replace")


def file_name(path: str | PurePath) -> FileName:
    """Rank, stamp and prefix of a trace's file name."""
    name = stem(path)
    stamp = STAMP.search(name)
    rest = name[: stamp.start()] + name[stamp.end() :] if stamp else name
    rank = RANK.search(rest)
    prefix = RANK.sub("", rest) if rank else WORD.sub("", rest)
    return FileName(
        int(rank[1]) if rank else None, stamp[1] if stamp else "", re.sub(r"[_\s]+$|^[_\s]+", "", prefix)
    )


def rank_of(label: str) -> int | None:
    """The rank that a process name tells ("rank 3", "Rank_3 (host)")."""
    found = RANK.search(label)
    return int(found[1]) if found else None
