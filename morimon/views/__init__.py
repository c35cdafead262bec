"""One module a screen: build(snapshot, width, glyphs) -> styled lines, shared by tui and report."""
