"""Collective operations: algorithms as message schedules, their proof, and their expansion into traffic."""
