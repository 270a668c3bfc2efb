"""Conformance of packages together: collectives, laws and timers on a fabric in the engine."""
