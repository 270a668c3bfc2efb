"""Faults of all kinds planted in simulated and real jobs, read by the commands that a user has."""
