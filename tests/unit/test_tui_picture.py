"""Screenshots as SVG: words stand where their cells are, whatever the font."""

from __future__ import annotations

import re

from morimon.tui.picture import straightened

SVG = (
    "<style>@font-face { src: url(x) } .a { font-family: Fira Code, monospace; }</style>"
    '<text class="t-r1" x="12.2" y="20" textLength="134.2" clip-path="url(#c)">&#160;&lt;a&gt;&#160;&#160;1\u202f054</text>'
    '<text class="t-r2" x="0" y="40" textLength="24.4" clip-path="url(#c)">&#160;&#160;</text>'
    '<text class="t-r3" x="0" y="60" textLength="48.8" clip-path="url(#c)">日本</text>'
)


def test_every_word_has_a_place_of_its_own() -> None:
    texts = re.findall(
        r'x="([\d.]+)" y="([\d.]+)" textLength="([\d.]+)" clip-path="[^"]*">([^<]*)<', straightened(SVG)
    )
    assert [(float(x), y, text) for x, y, _, text in texts] == [
        (24.4, "20", "&lt;a&gt;"),
        (85.4, "20", "1"),
        (109.8, "20", "054"),
        (0.0, "60", "日本"),
    ]
    assert [float(length) for *_, length, _ in texts] == [36.6, 12.2, 36.6, 48.8]


def test_no_font_is_fetched() -> None:
    assert "@font-face" not in straightened(SVG)
    assert "DejaVu Sans Mono" in straightened(SVG)
