"""Pictures of traces for the screens, which may not reach the reports themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from morimon.trace.model import Trace


def picture_of(trace: Trace) -> str:
    """Draw a trace beside its file; a sentence that says where, or why not."""
    from morimon.report.trace_picture import PictureError, draw, target

    try:
        pages = draw(trace, target(trace.path))
    except PictureError as error:
        return str(error)
    more = f" and {len(pages) - 1} more pages" if len(pages) > 1 else ""
    return f"wrote {pages[0]}{more}"
