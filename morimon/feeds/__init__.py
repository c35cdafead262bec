"""What fills the store: the record reader, the trace-folder watcher, the trace loader."""
