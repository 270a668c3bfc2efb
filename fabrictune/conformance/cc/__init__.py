"""Conformance of congestion-control laws by hand and at one bottleneck."""
