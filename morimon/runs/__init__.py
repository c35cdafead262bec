"""Run folders on disk: ids, layout, lock, listing, pruning."""
