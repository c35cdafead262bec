"""The key registry: no key means two things on one screen, and the person's own keys are checked."""

from __future__ import annotations

import re

import pytest
from textual._ansi_sequences import ANSI_SEQUENCES_KEYS
from textual.keys import _character_to_key

from morimon.draw.glyphs import ASCII, UNICODE
from morimon.tui.keys import SCOPES, Key, KeymapError, check_keymap, is_key, keys_of, shown


def test_ids_are_unique_and_every_key_is_explained() -> None:
    keys = [key for scope in SCOPES.values() for key in scope]
    assert len({key.id for key in keys}) == len(keys)
    assert all(key.help.endswith(".") for key in keys)
    assert all(key.label for key in keys if key.rank)


def test_the_built_in_keys_do_not_clash() -> None:
    check_keymap({})


@pytest.mark.parametrize(
    ("own", "said"),
    [
        ({"ranks.srt": "o"}, "did you mean ranks.sort?"),
        ({"ranks.sort": "q"}, "q would mean both quit and ranks.sort"),
        ({"log.follow": "x,x"}, "x would mean both"),
        ({"quit": ","}, "a comma is called `comma`"),
        ({"quit": "ctrl+banana"}, "no key is called 'ctrl+banana'"),
        ({"quit": "Q, pgup"}, "did you mean pageup?"),
        ({"quit": "shift+ctrl+left"}, "no key is called"),
        ({"quit": "ctrl+Q"}, "no key is called"),
        ({"quit": "shift+q"}, "no key is called"),
        ({"help": "ctrl+c"}, "ctrl+c would mean both"),
        ({"quit": "Q", "help": "ctrl+c"}, "ctrl+c would mean both"),
    ],
)
def test_a_keymap_that_cannot_be_used_says_why(own: dict[str, str], said: str) -> None:
    with pytest.raises(KeymapError, match=re.escape(said)):
        check_keymap(own)


def test_own_keys_take_the_place_of_built_in_ones() -> None:
    own = {"ranks.sort": "o,O", "ranks.log": "enter"}
    check_keymap(own)
    by_id = {key.id: key.keys for key in keys_of(("ranks", "app"), own)}
    assert by_id["ranks.sort"] == "o,O"
    assert by_id["quit"] == "q,ctrl+c"


@pytest.mark.parametrize(
    "keys", ["Q", " Q ,F", "ctrl+x", "ctrl+c", "§", "f24", "alt+ctrl+left", "percent_sign"]
)
def test_ctrl_c_always_leaves(keys: str) -> None:
    check_keymap({"quit": keys})
    (quit_key,) = [key for key in keys_of(("app",), {"quit": keys}) if key.id == "quit"]
    parts = quit_key.keys.split(",")
    assert parts.count("ctrl+c") == 1
    assert all(part == part.strip() for part in parts)


def test_what_terminals_send_are_keys() -> None:
    sent = {key for keys in ANSI_SEQUENCES_KEYS.values() if isinstance(keys, tuple) for key in keys}
    unknown = {key.value for key in sent if not is_key(key.value)}
    assert unknown <= {
        "<ignore>",
        "<scroll-up>",
        "<scroll-down>",
        "shift+escape",
        "ctrl+@",
        "ctrl+underscore",
    }
    assert all(is_key(_character_to_key(chr(code))) for code in range(33, 127))


@pytest.mark.parametrize(
    ("keys", "text", "ascii_text"),
    [
        ("up,k", "↑", "^"),
        ("ctrl+p", "^p", "^p"),
        ("space", "space", "space"),
        ("shift+left", "shift+←", "shift+<"),
        ("?", "?", "?"),
    ],
)
def test_keys_are_shown_as_people_write_them(keys: str, text: str, ascii_text: str) -> None:
    key = Key("x", keys, "", "", "")
    assert shown(key, UNICODE) == text
    assert shown(key, ASCII) == ascii_text
