"""Kernel families, told by their slots: what each slot is, and in which order a warp meets them.

Sources: mori's slot enums (alphabetical per source file) and launch order, from its first profiler to today's.
`order` is a slot's place in an iteration; slots of equal order run side by side or repeat per token. A warp's order
only falls where its next iteration begins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from morimon.trace.model import Lane, Phase, Slot

if TYPE_CHECKING:
    from collections.abc import Mapping

    from morimon.trace.model import Family

INTERNODE = """
ep_dispatch_copy_to_staging staging    serial dispatch 0
dispatch_inter_node_send    disp_send  inter  dispatch 1
dispatch_inter_node_recv    disp_recv  inter  dispatch 2
dispatch_intra              disp_intra intra  dispatch 1
dispatch_sync               disp_sync  serial dispatch 3
combine_sync                comb_sync  serial combine  4
ep_combine_sync_barrier     barrier    serial combine  5
combine_inter_node          comb_inter inter  combine  6
combine_intra_node          comb_intra intra  combine  6
ep_combine_all              comb_all   serial combine  7
"""
ASYNC_LL = """
dispatch_async_slot_assign           assign    serial dispatch 0
dispatch_async_send_copy             disp_copy serial dispatch 1
dispatch_async_send_copy_multi_block disp_copy serial dispatch 1
dispatch_async_send_transfer         disp_send inter  dispatch 2
dispatch_async_recv_transfer         disp_recv inter  dispatch 3
dispatch_async_recv_copy             recv_copy serial dispatch 4
combine_async_send_copy              comb_copy serial combine  5
combine_async_send_transfer          comb_send inter  combine  6
combine_async_recv_transfer          comb_recv inter  combine  7
combine_async_recv_copy              comb_sum  serial combine  8
"""
INTRANODE = """
dispatch_send_tokens     disp_send   intra dispatch 0
dispatch_notify_peer     disp_notify intra dispatch 1
dispatch_wait_peer_token disp_wait   intra dispatch 2
combine_stage_input      stage       intra combine  3
combine_copy_input       copy_input  intra combine  3
combine_copy_weights     weights     intra combine  4
combine_barrier          barrier     intra combine  5
combine_accum_setup      setup       intra combine  6
combine_prepare_ptrs     ptrs        intra combine  7
combine_dequant_accum    accum       intra combine  7
combine_accum            accum       intra combine  7
combine_accum_weights    accum_w     intra combine  7
"""
LAST_FRAGMENT = "dispatch_sync"
RENAMED = {"CombineAll": "ep_combine_all"}
DISPATCH_INTRANODE = {"dispatch_send_tokens", "dispatch_notify_peer", "dispatch_wait_peer_token"}
V1_1_INTRANODE = {"combine_accum", "combine_copy_input"}
LL = {
    name: name.replace("_node", "_node_ll")
    for name in (
        "dispatch_inter_node_send",
        "dispatch_inter_node_recv",
        "combine_inter_node",
        "combine_intra_node",
    )
}
BARRIERS = {
    "dispatch_sync",
    "ep_combine_sync_barrier",
    "combine_barrier",
    "dispatch_async_recv_transfer",
    "combine_async_recv_transfer",
}
"""Slots in which warps wait for other ranks (of dispatch_sync the last fragment only)."""
SPARSE = {
    "dispatch_inter_node_send",
    "dispatch_inter_node_ll_send",
    "dispatch_async_send_transfer",
    "combine_async_send_transfer",
    "dispatch_notify_peer",
    "dispatch_wait_peer_token",
}
"""Slots in which only some warps have work: one a remote node in an RDMA block, one a queue pair, or warp 0 alone."""
GUESSES: dict[Lane, tuple[str, ...]] = {
    "serial": ("barrier", "sync"),
    "inter": ("inter_node", "internode", "rdma", "scale_out", "scaleout"),
    "intra": ("intra", "xgmi", "nvl", "scale_up", "scaleup"),
}


def _slots(table: str) -> dict[str, Slot]:
    found = {}
    for line in table.strip().splitlines():
        name, short, lane, phase, order = line.split()
        found[name] = Slot(name, name, short, _LANES[lane], _PHASES[phase], int(order), name == LAST_FRAGMENT)
    return found


OTHER: Lane = "other"
_LANES: dict[str, Lane] = {"inter": "inter", "intra": "intra", "serial": "serial"}
_PHASES: dict[str, Phase] = {"dispatch": "dispatch", "combine": "combine"}
V1 = _slots(INTERNODE)
MARKS: dict[Family, set[str]] = {
    "v1": set(LL),
    "v1_ll": set(LL.values()),
    "async_ll": set(_slots(ASYNC_LL)),
    "intranode": set(_slots(INTRANODE)),
}
KNOWN = {
    **V1,
    **{new: replace(V1[old], name=new, canonical=new) for old, new in LL.items()},
    **_slots(ASYNC_LL),
    **_slots(INTRANODE),
}


def slot(name: str) -> Slot:
    """What the slot `name` is, by today's names, those of other versions, or (unknown ones) guessed from its words."""
    canonical = name if name in KNOWN else RENAMED.get(name, name.rpartition(".")[2])
    known = KNOWN.get(canonical)
    if known:
        return known if name == canonical else replace(known, name=name)
    words = name.lower()
    lane = next((lane for lane, parts in GUESSES.items() if any(part in words for part in parts)), OTHER)
    phase: Phase = "dispatch" if "dispatch" in words else "combine" if "combine" in words else ""
    return Slot(name, name, name[:24], lane, phase, -1)


class Verdict:
    """`family`, and in `doubt` why it may be another ("" if it cannot)."""

    def __init__(self, family: Family, doubt: str = "") -> None:
        self.family, self.doubt = family, doubt


def family(spans: Mapping[str, int]) -> Verdict:
    """The family that logs these slots (canonical name -> number of spans)."""
    votes: dict[Family, int] = {
        name: sum(spans.get(mark, 0) for mark in marks) for name, marks in MARKS.items()
    }
    best = max(votes, key=lambda name: votes[name])
    others = [name for name in votes if name != best and votes[name]]
    if not votes[best]:
        if not any(name in spans for name in V1):
            return Verdict("unknown")
        return Verdict("v1", "the slots that are here belong to v1 and v1_ll alike; read as v1")
    doubt = f"slots of {' and '.join([best, *others])} in one trace; read as {best}" if others else ""
    if best != "intranode" or not DISPATCH_INTRANODE & spans.keys() or V1_1_INTRANODE & spans.keys():
        return Verdict(best, doubt)
    if not any(name.startswith("combine_") for name in spans):
        return Verdict("intranode_ll", doubt)
    same = "intranode_ll and the plain intranode kernel of mori 1.2.0 to 1.2.2 log the same slots; read as intranode_ll"
    return Verdict("intranode_ll", doubt or same)


def required_phases(name: Family) -> tuple[Phase, ...]:
    """Phases without which an iteration of the family is partial."""
    if name == "unknown":
        return ()
    return ("combine",) if name == "intranode" else ("dispatch", "combine")
