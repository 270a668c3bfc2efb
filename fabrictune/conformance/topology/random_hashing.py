"""Cost of random hashing: the closed forms, and the same through the real hash, routing and fair rates.

The reference was derived apart from this code: by truncated-Poisson convolution with a Monte Carlo check, printed to
three or four digits. Sampled figures may be four standard errors off.
"""

from collections.abc import Callable, Mapping
from functools import partial

from fabrictune.conformance.topology.uplink_sampling import (
    NUM_SEEDS,
    Climb,
    exact_figures,
    sampled_figures,
    standard_errors,
)
from fabrictune.foundation.cases import Band, Case, around

STANDARD_ERRORS = 4.0
PRINTED = 0.002  # relative: the last digit of the reference
PRINTED_BRIEFLY = 0.005  # that of the shorter tables, whose figures are partly Monte Carlo

UNITS = {
    "no-overload": "probability",
    "max-load": "flows",
    "crowded": "of flows",
    "throughput": "of demand",
    "slowest": "of demand",
}
REFERENCE: Mapping[str, tuple[Climb, tuple[float, ...]]] = {  # values in the order of UNITS
    "64-on-64": (Climb(num_nics=64, num_links=64), (3.22e-27, 3.958, 0.6292, 0.6350, 0.2620)),
    "64-on-32-double": (Climb(num_nics=64, num_links=32, link_nics=2), (1.383e-17, 5.415, 0.5897, 0.7336, 0.3803)),
    "32-on-32-double": (Climb(num_nics=32, num_links=32, link_nics=2), (0.02927, 3.533, 0.2525, 0.9022, 0.5904)),
    "32-on-64": (Climb(num_nics=32, num_links=64), (7.682e-05, 2.722, 0.3863, 0.7917, 0.3886)),
    "16-on-32-double": (Climb(num_nics=16, num_links=32, link_nics=2), (0.6413, 2.392, 0.0783, 0.9720, 0.8733)),
    "16-on-64": (Climb(num_nics=16, num_links=64), (0.129, 1.991, 0.2104, 0.8909, 0.5450)),
    "8-on-8": (Climb(num_nics=8, num_links=8), (0.002403, 2.597, 0.6073, 0.6564, 0.4100)),
    "32-on-32": (Climb(num_nics=32, num_links=32), (1.8e-13, 3.533, 0.6263, 0.6379, 0.2952)),
    "128-on-60-double": (Climb(num_nics=128, num_links=60, link_nics=2), (0.0, 6.161, 0.6270, 0.7101, 0.3323)),
    "32-of-16-qps": (Climb(num_nics=32, num_links=32, qps_per_nic=16), (4.412e-31, 24.824, 0.5317, 0.9023, 0.6492)),
    "32-of-4-qps": (Climb(num_nics=32, num_links=32, qps_per_nic=4), (5.757e-22, 8.651, 0.5634, 0.8077, 0.4712)),
}
FLOWS_ON_LINKS = (  # flows, links, chance of a collision, most loaded link, mean rate of a flow
    (2, 8, 0.1250, 1.129, 0.938),
    (8, 8, 0.9976, 2.601, 0.656),
    (8, 16, 0.8792, 2.065, 0.807),
    (16, 16, 1.0, 3.075, 0.644),
    (16, 64, 0.8710, 1.990, 0.891),
    (32, 32, 1.0, 3.540, 0.638),
    (64, 64, 1.0, 3.951, 0.635),
)
ALONE = ((8, 8, 0.3927), (16, 64, 0.7896))
ELEPHANTS = ((1, 3.075), (4, 1.971), (16, 1.468))  # queue pairs of each flow; most loaded of 16 links, in flows

_EXACT = "exact: truncated-Poisson convolution, binomial load"
_SAMPLED = f"{_EXACT}; ours by the real hash and routing, {NUM_SEEDS} seeds"
_BIRTHDAY = "birthday problem, E[max load], E[used links] / N, (1 - 1/M)^(N - 1)"
_SCALING = "E[max load] of 16 flows on 16 links, each of q equal queue pairs"


def cases() -> tuple[Case, ...]:
    """Return the cases of random hashing."""
    return (*_reference_cases(), *_birthday_cases(), *_scaling_cases())


def _reference_cases() -> tuple[Case, ...]:
    return tuple(
        Case(name=f"topology.ecmp-{name}-{figure}{how}", source=source, unit=unit, **band, run=run)
        for name, (climb, values) in REFERENCE.items()
        for (figure, unit), expected in zip(UNITS.items(), values, strict=True)
        for how, source, band, run in (
            ("", _EXACT, around(expected, PRINTED), _exactly(climb, figure)),
            ("-sampled", _SAMPLED, _within_error(climb, figure, expected), _by_sample(climb, figure)),
        )
    )


def _birthday_cases() -> tuple[Case, ...]:
    rows = [
        (flows, links, what, unit, expected, figure)
        for flows, links, collision, max_load, rate in FLOWS_ON_LINKS
        for what, unit, expected, figure in (
            ("any-collision", "probability", collision, _collision),
            ("mean-max-load", "flows", max_load, _max_load_in_nics),
            ("mean-rate", "of line rate", rate, _used_links_per_flow),
        )
    ]
    rows += [(flows, links, "alone", "probability", expected, _alone) for flows, links, expected in ALONE]
    return tuple(
        Case(
            name=f"topology.ecmp-{flows}-on-{links}-{what}",
            source=_BIRTHDAY,
            unit=unit,
            **around(expected, PRINTED_BRIEFLY),
            run=partial(figure, Climb(num_nics=flows, num_links=links)),
        )
        for flows, links, what, unit, expected, figure in rows
    )


def _scaling_cases() -> tuple[Case, ...]:
    return tuple(
        Case(
            name=f"topology.ecmp-16-flows-of-{qps}-qps-max-load{how}",
            source=_SCALING,
            unit="flows",
            **around(expected, fraction),
            run=partial(_max_load_in_nics, Climb(num_nics=16, num_links=16, qps_per_nic=qps), figures),
        )
        for qps, expected in ELEPHANTS
        for how, fraction, figures in (("", PRINTED_BRIEFLY, exact_figures), ("-sampled", 0.04, sampled_figures))
    )


def _exactly(climb: Climb, figure: str) -> Callable[[], float]:
    return lambda: exact_figures(climb)[figure]


def _by_sample(climb: Climb, figure: str) -> Callable[[], float]:
    return lambda: sampled_figures(climb)[figure]


def _within_error(climb: Climb, figure: str, expected: float) -> Band:
    margin = STANDARD_ERRORS * standard_errors(climb)[figure]
    return {"expected": expected, "low": expected - margin, "high": expected + margin}


def _collision(climb: Climb) -> float:
    return 1 - exact_figures(climb)["no-overload"]


def _max_load_in_nics(climb: Climb, figures: Callable[[Climb], Mapping[str, float]] = exact_figures) -> float:
    return figures(climb)["max-load"] / climb.qps_per_nic


def _alone(climb: Climb) -> float:
    return exact_figures(climb)["alone"]


def _used_links_per_flow(climb: Climb) -> float:
    return exact_figures(climb)["used-links"] / climb.num_nics
