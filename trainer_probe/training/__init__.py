"""A training run from its recipe to its record: checks of all ranks, input, training loop, reports."""
