"""Roles of slots, in the families that readers of these pictures know: internode red, purple and orange, intranode
green and teal, serial kernels blue, sand and brown. The colours are the theme's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from morimon.draw.line import Role
from morimon.trace.model import Slot

_INTER: Mapping[str, Role] = {
    "disp_send": "slot-send",
    "disp_recv": "slot-recv",
    "comb_inter": "slot-inter",
    "comb_send": "slot-inter",
    "comb_recv": "slot-recv",
}
_INTRA: Mapping[str, Role] = {
    "disp_intra": "slot-intra",
    "comb_intra": "slot-intra-2",
    "disp_send": "slot-intra",
    "disp_notify": "slot-intra-3",
    "disp_wait": "slot-other",
    "stage": "slot-intra",
    "copy_input": "slot-intra",
    "weights": "slot-intra-3",
    "barrier": "slot-barrier",
    "setup": "slot-other",
    "ptrs": "slot-intra-4",
    "accum": "slot-intra-2",
    "accum_w": "slot-intra-3",
}
_SERIAL: Mapping[str, Role] = {
    "staging": "slot-copy",
    "assign": "slot-all",
    "disp_copy": "slot-copy",
    "recv_copy": "slot-intra-4",
    "disp_sync": "slot-sync",
    "comb_sync": "slot-all",
    "comb_copy": "slot-copy",
    "barrier": "slot-barrier",
    "comb_all": "slot-intra-4",
    "comb_sum": "slot-intra-4",
}
_TURNS: tuple[Role, ...] = (
    "slot-copy",
    "slot-inter",
    "slot-intra",
    "slot-recv",
    "slot-intra-2",
    "slot-sync",
    "slot-send",
    "slot-intra-3",
    "slot-all",
    "slot-intra-4",
)
"""Slots that nobody knows take turns, in the order in which the file first names them."""


def palette(slots: Sequence[Slot]) -> tuple[Role, ...]:
    """The role of every slot."""
    return tuple(_role(slot, code) for code, slot in enumerate(slots))


def _role(slot: Slot, code: int) -> Role:
    known = {"inter": _INTER, "intra": _INTRA, "serial": _SERIAL, "other": {}}[slot.lane].get(slot.short)
    return known if known and slot.order >= 0 else _TURNS[code % len(_TURNS)]
