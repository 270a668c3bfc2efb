"""Congestion-control laws in the engine, against what their papers published. One law a file."""

from foundation.cases import Case
from netsim.conformance.laws import barre, dcqcn, dcqcn_beside_pfc, dctcp, hpcc, hpcc_figure_11, hybrid, swift, timely

LAWS = (barre, dcqcn, dcqcn_beside_pfc, dctcp, hpcc, hpcc_figure_11, hybrid, swift, timely)


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return tuple(case for law in LAWS for case in law.cases())
