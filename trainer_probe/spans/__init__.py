"""Spans of a training: what each rank did from when to when, recorded always."""
