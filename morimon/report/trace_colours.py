"""Colours of slots on paper, in the families that readers of these pictures know: internode red, purple and orange,
intranode green and teal, serial kernels blue, sand and brown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from morimon.trace.model import Slot

_BY_SHORT = {
    "staging": "#4a6fb3",
    "disp_send": "#c4454f",
    "disp_recv": "#7f6db3",
    "disp_intra": "#4f9f63",
    "disp_sync": "#c9b368",
    "comb_sync": "#d98b5f",
    "barrier": "#a3652c",
    "comb_inter": "#e07b30",
    "comb_intra": "#3f9fb0",
    "comb_all": "#8a7461",
    "assign": "#6f8fc9",
    "disp_copy": "#4a6fb3",
    "recv_copy": "#5d86a8",
    "comb_copy": "#b08d57",
    "comb_send": "#d9663a",
    "comb_recv": "#a5609f",
    "comb_sum": "#8a7461",
}
_INTRANODE = {
    "disp_send": "#2f8f57",
    "disp_notify": "#7fb23f",
    "disp_wait": "#a9c97a",
    "stage": "#4f9f63",
    "copy_input": "#4f9f63",
    "weights": "#2f7d6b",
    "barrier": "#a3652c",
    "setup": "#8fc7b5",
    "ptrs": "#57b9c0",
    "accum": "#3f9fb0",
    "accum_w": "#27708a",
}
_OTHERS = ("#5b7fa8", "#b5793d", "#6b9c5a", "#9a6a9e", "#8c8c8c", "#b8617a", "#4f9c9c", "#a39a3c")


def colour_of(slot: Slot, code: int, *, white: float = 0.0) -> str:
    """`#rrggbb` of a slot, mixed with so much white; slots that nobody knows take turns by their number."""
    known = (_INTRANODE if slot.lane == "intra" else {}).get(slot.short) or _BY_SHORT.get(slot.short)
    colour = known if known and slot.order >= 0 else _OTHERS[code % len(_OTHERS)]
    return "#" + "".join(f"{round(part + (255 - part) * white):02x}" for part in bytes.fromhex(colour[1:]))


def ink_on(colour: str) -> str:
    """Black or white, whichever is read more easily on `colour`."""
    red, green, blue = bytes.fromhex(colour[1:])
    return "black" if 0.299 * red + 0.587 * green + 0.114 * blue > 145 else "white"
