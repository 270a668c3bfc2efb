"""A training run from its recipe to its record: ranks that agree, are fed, train, and report."""
