"""The key registry: no key means two things on one screen, and the person's own keys are checked."""

from __future__ import annotations

import pytest

from morimon.draw.glyphs import ASCII, UNICODE
from morimon.tui.keys import SCOPES, Key, KeymapError, check_keymap, keys_of, shown


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
    ],
)
def test_a_keymap_that_cannot_be_used_says_why(own: dict[str, str], said: str) -> None:
    with pytest.raises(KeymapError, match=said.replace("?", r"\?").replace(".", r"\.")):
        check_keymap(own)


def test_own_keys_take_the_place_of_built_in_ones() -> None:
    own = {"ranks.sort": "o,O", "ranks.log": "enter"}
    check_keymap(own)
    by_id = {key.id: key.keys for key in keys_of(("ranks", "app"), own)}
    assert by_id["ranks.sort"] == "o,O"
    assert by_id["quit"] == "q,ctrl+c"


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
