"""Tells experiment trackers of a run: processes beside it that read its folder (rlhf-run starts the first; see
docs/trackers.md)."""
