"""Conformance of fabrics, hashes, paths and fair rates.

Each case runs the real builders, hashes, routing and solver, never a formula of its own.
"""
