"""Fabrics as arrays: builders, importers, hash models, routing and paths, ECMP collision analysis, placement."""
