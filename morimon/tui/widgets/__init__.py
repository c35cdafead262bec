"""Widgets: lines of a page, and a prompt."""
