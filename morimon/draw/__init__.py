"""Pure drawing on a character grid: tables, lanes, sparks, heat, units, glyphs -> styled runs."""
