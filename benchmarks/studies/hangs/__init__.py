"""Hangs planted in modelled jobs of 16 to 1,024 ranks, and how often and how soon they are named."""
