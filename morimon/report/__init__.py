"""The headless twin of the screens: text, JSON, pictures."""
