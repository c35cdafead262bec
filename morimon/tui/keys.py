"""The one list of keys: bindings, the key line, the help screen, the palette and the settings file all read it.

A scope is "app" and "screens" (everywhere), "view" (whatever shows rows), "replay", or the name of a screen. Ids are stable: the
settings file refers to them.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches

from morimon.draw.glyphs import Glyphs
from morimon.tui.screens import SCREENS


@dataclass(frozen=True, slots=True)
class Key:
    """One thing a key does: `keys` comma-separated, `label` for the key line, `help` a sentence.

    `rank` orders the key line: the lowest numbers stay longest when there is little room; 0 is never shown there.
    """

    id: str
    keys: str
    action: str
    label: str
    help: str
    rank: int = 0


SCOPES: dict[str, tuple[Key, ...]] = {
    "app": (
        Key("help", "?,f1", "app.help", "help", "Show all keys of this screen.", 1),
        Key(
            "quit",
            "q,ctrl+c",
            "app.quit_viewer",
            "quit",
            "Leave; a job that runs may go on or be stopped.",
            2,
        ),
        Key("pause", "space", "app.pause", "pause", "Freeze the view; collecting goes on behind it.", 4),
        Key("next_screen", "tab", "app.next_screen(1)", "", "Go to the next screen."),
        Key("previous_screen", "shift+tab", "app.next_screen(-1)", "", "Go to the previous screen."),
        Key("copy", "y", "app.copy", "copy", "Copy the selected text, or the row under the cursor.", 9),
        Key(
            "export", "e", "export", "export", "Write the visible table to a file: CSV, JSON or Markdown.", 8
        ),
        Key("screenshot", "P", "app.capture", "", "Write this screen to files, as SVG and as plain text."),
        Key("theme", "T", "app.next_theme", "", "Take the next theme."),
        Key("palette", "ctrl+p", "app.command_palette", "", "Search all commands by name."),
        Key("suspend", "ctrl+z", "app.suspend_process", "", "Put morimon aside; `fg` brings it back."),
        Key("redraw", "ctrl+l", "app.redraw", "", "Paint the whole screen anew."),
    ),
    "screens": tuple(
        Key(
            f"screen.{screen.name}",
            screen.key,
            f"app.open_screen('{screen.name}')",
            "",
            f"Go to the {screen.title} screen.",
        )
        for screen in SCREENS
    ),
    "view": (
        Key("filter", "/", "filter", "filter", "Filter or search what this screen shows.", 3),
        Key("back", "escape", "back", "", "Clear the filter, or close what is open."),
        Key("up", "up,k", "move(-1)", "", "One row up."),
        Key("down", "down,j", "move(1)", "", "One row down."),
        Key("page_up", "pageup,ctrl+b", "move_page(-1)", "", "One page up."),
        Key("page_down", "pagedown,ctrl+f", "move_page(1)", "", "One page down."),
        Key("first", "home,g", "move_to(0)", "", "To the first row."),
        Key("last", "end,G", "move_to(-1)", "", "To the last row."),
    ),
    "replay": (
        Key("replay.slower", "<", "app.replay_speed(0.5)", "slower", "Play at half the speed.", 6),
        Key("replay.faster", ">", "app.replay_speed(2.0)", "faster", "Play at twice the speed.", 6),
        Key("replay.step_back", "comma", "app.replay_step(-1)", "", "One round back, and pause."),
        Key("replay.step", ".", "app.replay_step(1)", "step", "One round on, and pause.", 7),
        Key("replay.back", "shift+left,H", "app.replay_seek(-10)", "", "Ten seconds back."),
        Key("replay.on", "shift+right,L", "app.replay_seek(10)", "", "Ten seconds on."),
        Key(
            "replay.goto",
            ":",
            "app.replay_goto",
            "go to",
            "Go to a time (1:30), a share (45%) or a round (#12).",
            6,
        ),
    ),
    "ranks": (
        Key("ranks.sort", "s", "sort_next(1)", "sort", "Sort by the next column.", 5),
        Key("ranks.sort_back", "S", "sort_next(-1)", "", "Sort by the previous column."),
        Key("ranks.reverse", "r", "reverse", "", "Reverse the order."),
        Key(
            "ranks.follow", "f", "follow", "follow worst", "Let the cursor follow the rank that is worst.", 6
        ),
        Key("ranks.figure", "m", "figure", "µs/GB/s", "Graph latency or bandwidth.", 10),
        Key("ranks.log", "enter,o", "open_log", "log", "Show the log of this rank.", 7),
    ),
    "bandwidth": (
        Key("bandwidth.phase", "d", "phase", "phase", "Dispatch or combine.", 2),
        Key("bandwidth.link", "m", "link", "RDMA/XGMI", "RDMA or XGMI/NVL.", 6),
        Key("bandwidth.next", "n", "rank(1)", "rank", "The same figure of the next rank.", 10),
        Key("bandwidth.previous", "N", "rank(-1)", "", "The same figure of the rank before."),
        Key("bandwidth.log", "enter,o", "open_log", "log", "Show the log of this rank.", 7),
    ),
    "traffic": (
        Key("traffic.left", "left,h", "column(-1)", "receiver", "One receiver to the left.", 6),
        Key("traffic.right", "right,l", "column(1)", "", "One receiver to the right."),
        Key("traffic.next_node", "n", "node(1)", "node", "The same receiver on the next node.", 10),
        Key("traffic.previous_node", "N", "node(-1)", "", "The same receiver on the node before."),
        Key("traffic.exact", "z", "exact", "counts", "Every rank's counts, or all ranks at once.", 3),
        Key("traffic.log", "enter,o", "open_log", "log", "Show the log of the sender.", 7),
    ),
    "system": (
        Key("system.sort", "s", "sort_next(1)", "sort", "Sort by the next column.", 5),
        Key("system.sort_back", "S", "sort_next(-1)", "", "Sort by the previous column."),
        Key("system.reverse", "r", "reverse", "", "Reverse the order."),
        Key("system.log", "enter,o", "open_log", "log", "Show the log of this rank.", 7),
    ),
    "trace": (
        Key("trace.open", "enter", "open_row", "warps", "Open the slot into its warps; open a file.", 2),
        Key("trace.threads", "t", "threads", "threads", "A row a warp instead of a row a slot.", 3),
        Key("trace.left", "left,h", "pan(-1)", "pan", "Earlier.", 9),
        Key("trace.right", "right,l", "pan(1)", "", "Later."),
        Key("trace.zoom_in", "plus,equals_sign", "zoom(2.0)", "zoom", "Zoom in on the chosen slot.", 7),
        Key("trace.zoom_out", "minus", "zoom(0.5)", "", "Zoom out."),
        Key("trace.fit", "0", "fit", "all", "Show the whole iteration.", 12),
        Key("trace.fit_slot", "z", "fit_slot", "", "Show the chosen slot as large as it goes."),
        Key("trace.next", "w", "measure(1)", "", "To the next slot in time; among warps to the next span."),
        Key("trace.previous", "b", "measure(-1)", "", "To the slot, or span, before."),
        Key("trace.iteration", "right_square_bracket", "iteration(1)", "iteration", "The next iteration.", 7),
        Key("trace.iteration_back", "left_square_bracket", "iteration(-1)", "", "The iteration before."),
        Key("trace.rank", "r", "rank(1)", "rank", "The next rank of this run.", 6),
        Key("trace.rank_back", "R", "rank(-1)", "", "The rank before."),
        Key("trace.files", "f", "files", "files", "Choose among all traces of the folder.", 3),
        Key("trace.newest", "n", "newest", "newest", "Show the newest trace, and go on doing so.", 10),
        Key("trace.sort", "s", "sort_next(1)", "sort", "Sort by the next column.", 11),
        Key("trace.sort_back", "S", "sort_next(-1)", "", "Sort by the previous column."),
        Key("trace.reverse", "o", "reverse", "", "Reverse the order."),
        Key("trace.every", "a", "every", "", "Figures of all iterations, or of this one."),
        Key(
            "trace.picture", "p", "picture", "PNG", "Draw all iterations into a picture beside the trace.", 13
        ),
        Key("trace.merge", "m", "merge", "merge", "Write all ranks of this run into one Perfetto file.", 14),
        Key("trace.cancel", "x", "cancel_loading", "", "Give up loading."),
    ),
    "log": (
        Key("log.follow", "f", "follow", "follow", "Follow the newest line, or stay.", 5),
        Key("log.next", "n", "match(1)", "", "To the next line that matches the search."),
        Key("log.previous", "N", "match(-1)", "", "To the line before that matches the search."),
        Key("log.level", "v", "level", "level", "Show all lines, warnings and errors, or errors only.", 6),
        Key("log.rank", "r", "rank(1)", "rank", "Show the next rank's lines only.", 7),
        Key("log.rank_back", "R", "rank(-1)", "", "Show the previous rank's lines only."),
        Key("log.all", "a", "all_ranks", "", "Show the lines of all ranks."),
        Key("log.left", "left,h", "pan(-8)", "", "Long lines: to the left."),
        Key("log.right", "right,l", "pan(8)", "", "Long lines: to the right."),
        Key("log.line_start", "0,circumflex_accent", "line_start", "", "Long lines: to their beginning."),
        Key(
            "log.line_end",
            "dollar_sign",
            "line_end",
            "",
            "Long lines: to the end of the one under the cursor.",
        ),
    ),
}

_NAMES = {
    "plus": "+",
    "equals_sign": "=",
    "minus": "-",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "circumflex_accent": "^",
    "dollar_sign": "$",
    "space": "space",
    "comma": ",",
    "escape": "esc",
    "enter": "enter",
    "pageup": "PgUp",
    "pagedown": "PgDn",
    "home": "Home",
    "end": "End",
    "tab": "Tab",
}


WAY_OUT = "ctrl+c"
_MODIFIERS = frozenset({"alt", "ctrl", "shift"})
_SHORT_NAMES = {
    "solidus": "slash",
    "reverse_solidus": "backslash",
    "commercial_at": "at",
    "hyphen_minus": "minus",
    "plus_sign": "plus",
    "low_line": "underscore",
}
"""What Textual calls characters instead of by their Unicode names."""
_SIGNS = (
    unicodedata.name(char).lower().replace("-", "_").replace(" ", "_")
    for char in "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
)
NAMED = frozenset(
    {
        *(
            "up",
            "down",
            "left",
            "right",
            "home",
            "end",
            "pageup",
            "pagedown",
            "insert",
            "delete",
            "backspace",
        ),
        *("tab", "enter", "escape", "space"),
        *(f"f{number}" for number in range(1, 25)),
        *(_SHORT_NAMES.get(sign, sign) for sign in _SIGNS),
    }
)
"""Keys that have names, as Textual calls them."""


class KeymapError(ValueError):
    """A `[keys]` table that cannot be used, with a sentence that says why."""


def keys_of(scopes: Iterable[str], remapped: Mapping[str, str] | None = None) -> list[Key]:
    """The keys of these scopes, with the person's own keys in place of the built-in ones."""
    own = own_keys(remapped or {})
    return [replace(key, keys=own.get(key.id, key.keys)) for scope in scopes for key in SCOPES.get(scope, ())]


def own_keys(remapped: Mapping[str, str]) -> dict[str, str]:
    """The person's own keys without blanks. Ctrl+C leaves whatever else does: every terminal can send it."""
    own = {name: [part.strip() for part in keys.split(",")] for name, keys in remapped.items()}
    if "quit" in own and WAY_OUT not in own["quit"]:
        own["quit"].append(WAY_OUT)
    return {name: ",".join(parts) for name, parts in own.items()}


def is_key(name: str) -> bool:
    """Whether a terminal may send a key of this name: a character, or a name of `NAMED`, also after modifiers in the order of the alphabet.

    Shift shows in a character itself; after other modifiers letters are small.
    """
    *modifiers, base = name.split("+") if name != "+" else [name]
    if modifiers != sorted(set(modifiers)) or not _MODIFIERS.issuperset(modifiers):
        return False
    if base in NAMED:
        return True
    if len(base) != 1 or not base.isprintable() or base == " ":
        return False
    return not modifiers or (base.isascii() and base == base.lower() and modifiers != ["shift"])


def check_keymap(remapped: Mapping[str, str]) -> None:
    """KeymapError where an id or a key is unknown, or two things of one screen would share a key."""
    known = {key.id for keys in SCOPES.values() for key in keys}
    for name, keys in remapped.items():
        if name not in known:
            near = get_close_matches(name, known, 1)
            raise KeymapError(
                f"[keys] {name}: no such key id" + (f"; did you mean {near[0]}?" if near else "")
            )
        if not all(part.strip() for part in keys.split(",")):
            raise KeymapError(f"[keys] {name}: empty key in {keys!r} (a comma is called `comma`)")
        for part in keys.split(","):
            if not is_key(part.strip()):
                near = get_close_matches(part.strip(), NAMED, 1)
                raise KeymapError(
                    f"[keys] {name}: no key is called {part.strip()!r}; "
                    + (
                        f"did you mean {near[0]}?"
                        if near
                        else "keys are called as in `x`, `X`, `f5`, `ctrl+x`"
                    )
                )
    for scope in SCOPES:
        taken: dict[str, str] = {}
        for key in keys_of(dict.fromkeys(("app", "screens", "view", "replay", scope)), remapped):
            for part in key.keys.split(","):
                if part in taken:
                    raise KeymapError(f"[keys] {part} would mean both {taken[part]} and {key.id}")
                taken[part] = key.id


def shown(key: Key, glyphs: Glyphs) -> str:
    """The first key of a binding as people write it: `↑`, `^p`, `space`."""
    first = key.keys.split(",")[0].strip()
    if first.startswith("ctrl+"):
        return f"^{first.removeprefix('ctrl+')}"
    arrows = dict(zip(("up", "down"), glyphs.up_down, strict=True))
    arrows |= dict(zip(("left", "right"), glyphs.left_right, strict=True))
    if first.startswith("shift+"):
        rest = first.removeprefix("shift+")
        return f"shift+{arrows.get(rest, _NAMES.get(rest, rest))}"
    return arrows.get(first) or _NAMES.get(first, first)
