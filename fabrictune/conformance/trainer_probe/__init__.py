"""Conformance of the reference trainer."""
