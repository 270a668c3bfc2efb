"""Faults in time: which port is held by what from when to when, and what that came to."""
