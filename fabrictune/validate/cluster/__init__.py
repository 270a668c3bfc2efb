"""Validation of a whole cluster: stages on its nodes, limits from the model of its fabric, and their record."""
