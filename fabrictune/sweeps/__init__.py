"""Sweeps: one scenario under many settings, each its own record; what the best of them are, and which keys matter."""
