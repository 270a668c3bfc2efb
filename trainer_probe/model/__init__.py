"""A GPT as functions over weights: its shapes, its counts, its layers, and the single process that computes it."""
