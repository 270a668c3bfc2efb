"""Diagnoses of a model of a job under faults."""
