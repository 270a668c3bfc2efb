"""A GPT as functions over weights: shape and counts, weights, layers, and the operators of a single process."""
