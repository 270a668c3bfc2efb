"""Sweeps: one scenario under many settings, each its own record; Pareto-optimal points, and sensitivities."""
