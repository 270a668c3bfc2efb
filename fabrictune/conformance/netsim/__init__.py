"""Conformance of the packet engine: closed forms, bounds, losslessness."""
