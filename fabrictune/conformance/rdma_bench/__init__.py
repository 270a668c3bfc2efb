"""Conformance of retransmission timers."""
