"""Metrics of a simulated run: one definition of each, which the terminal, pages, sweeps and expectations all read."""
