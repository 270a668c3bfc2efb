"""Checkpoints of a training: taken beside its steps, kept in one or more storages, and taken up by any layout."""
