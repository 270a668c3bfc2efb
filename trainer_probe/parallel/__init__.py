"""The axes of parallel training, one module each, over `Comm`."""
