"""The live dashboard: the only room that knows Textual and rich."""
