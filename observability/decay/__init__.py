"""Decay of a job's speed: whether steps become longer, and what in them grows."""
