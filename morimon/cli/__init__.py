"""Commands, one module each; nothing slow is imported before a command needs it."""
