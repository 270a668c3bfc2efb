"""Scenario files: read and checked, composed into what an engine takes, and run."""
