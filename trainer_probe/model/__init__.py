"""Models as functions over weights: families, their sublayers and counts, and the operators of a single process."""
