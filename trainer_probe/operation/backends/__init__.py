"""Backends: where the nodes of a job come from."""
