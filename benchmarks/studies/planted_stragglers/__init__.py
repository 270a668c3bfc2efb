"""Planted stragglers: simulated jobs with known faults, and what the diagnosis makes of their spans."""
