"""Figures of records for papers, drawn by matplotlib: the charts of the HTML page as SVG, PDF or PNG.

    figure = ft.plot.completion_times([run_a, run_b], labels=["DCQCN", "Swift"])
    ft.plot.save(figure, "fct.pdf")

Each function takes records and returns a `matplotlib.figure.Figure`, whose axes can be changed before it is saved.
Needs the extra `plot`.
"""

from fabrictune.plot.figures import (
    bus_bandwidth,
    completion_times,
    effective_time,
    fit_errors,
    flows,
    link_loads,
    pair_map,
    queues,
    slowdowns,
    startup,
    survival,
    sweep,
    tail,
    throughput,
    training_loss,
    whatif,
)
from fabrictune.plot.rendering import save

__all__ = [
    "bus_bandwidth",
    "completion_times",
    "effective_time",
    "fit_errors",
    "flows",
    "link_loads",
    "pair_map",
    "queues",
    "save",
    "slowdowns",
    "startup",
    "survival",
    "sweep",
    "tail",
    "throughput",
    "training_loss",
    "whatif",
]
