"""Published results that the topology room claims, and how to obtain ours. One subject a file, listed here.

Each goes through the real builders, hashes, routing and solver, never through a formula of its own.
"""

from foundation.cases import Case
from topology.conformance import (
    dual_tor,
    fabrics,
    fairness,
    hash_functions,
    paths,
    polarization,
    random_hashing,
    three_means,
)

SUBJECTS = (fabrics, paths, hash_functions, polarization, random_hashing, dual_tor, three_means, fairness)


def cases() -> tuple[Case, ...]:
    """Return the room's cases."""
    return tuple(case for subject in SUBJECTS for case in subject.cases())
