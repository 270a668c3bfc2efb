"""Conformance: published results that each package reproduces, one subject a file."""
