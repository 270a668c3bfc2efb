"""Faults: their intervals on ports, and their results."""
