"""Conformance of collectives: schedules, bandwidths, start-up."""
