"""Diagnostics of a job's nodes: tests on each, tests between them, and the nodes that are to blame."""
