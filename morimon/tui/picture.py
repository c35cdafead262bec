"""Screenshots that stay straight in every viewer: each word of Textual's SVG gets a place of its own.

Textual names a web font and stretches whole runs of text to their width. Where that font is missing, or lacks a
character, a run's columns slip; a word that stands by itself cannot.
"""

from __future__ import annotations

import re
from html import escape, unescape

from morimon.draw.text import cells

_TEXT = re.compile(
    r'<text class="(?P<style>[^"]*)" x="(?P<x>[\d.]+)" y="(?P<y>[\d.]+)" textLength="(?P<length>[\d.]+)"'
    r"(?P<rest>[^>]*)>(?P<text>[^<]*)</text>"
)
_FONT_FACE = re.compile(r"\s*@font-face\s*\{.*?\}", re.DOTALL)
_FONT = re.compile(r"font-family:\s*Fira Code[^;]*;")
_WORD = re.compile(r"[^\s\u00a0]+")


def straightened(svg: str) -> str:
    """The same picture with fonts that people have, and a place for each word."""
    svg = _FONT.sub("font-family: Menlo, DejaVu Sans Mono, Consolas, monospace;", _FONT_FACE.sub("", svg))
    return _TEXT.sub(_words, svg)


def _words(match: re.Match[str]) -> str:
    text = unescape(match["text"])
    columns = cells(text)
    if not columns:
        return ""
    cell = float(match["length"]) / columns
    start = float(match["x"])
    return "".join(
        f'<text class="{match["style"]}" x="{start + cells(text[: word.start()]) * cell:g}" y="{match["y"]}" '
        f'textLength="{cells(word[0]) * cell:g}"{match["rest"]}>{escape(word[0])}</text>'
        for word in _WORD.finditer(text)
    )
