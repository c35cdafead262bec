"""How JSON looks to one who searches it without decoding it: strings, blanks, seams between the objects of an array."""

from __future__ import annotations

import re

STRING = rb'"[^"\\]*(?:\\.[^"\\]*)*"'
BLANKS = rb"[ \t\r\n]*"
SEAM = re.compile(rb"\}" + BLANKS + rb"," + BLANKS + rb"(?=\{)")
