"""Tells experiment trackers of a run: a process beside it that reads its folder (rlhf-run starts it; see docs/trackers.md)."""
