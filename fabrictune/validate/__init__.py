"""Comparisons of predictions with measurements: real runs, simulated again."""
