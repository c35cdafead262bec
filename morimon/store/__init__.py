"""What a viewer remembers of a run: fixed rings, versions, snapshots."""
