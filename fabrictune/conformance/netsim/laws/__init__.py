"""Conformance of congestion-control laws in the packet engine. One law a file."""
