"""Scenario files: parsed and checked, composed into an engine's inputs, and run."""
