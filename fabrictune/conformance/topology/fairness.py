"""Max-min fair rates of small networks that can be solved by hand; every port has a capacity of 1."""

from functools import partial

from fabrictune.foundation.cases import Case, around
from fabrictune.topology.fairness import max_min_rates
from fabrictune.topology.network import NO_PORT

# One flow through three ports in a row, and one more at each.
_PARKING_LOT = ((0, 1, 2), (0, NO_PORT, NO_PORT), (1, NO_PORT, NO_PORT), (2, NO_PORT, NO_PORT))
# Sessions 2, 3 and 5 share port 0, sessions 1 and 3 port 1; session 4 has port 2 for itself.
_FIVE_SESSIONS = ((1, NO_PORT), (0, NO_PORT), (0, 1), (2, NO_PORT), (0, NO_PORT))
_FIVE_SESSIONS_SOURCE = "Bertsekas, Gallager, Data Networks 6.5.2: the filling stops at 1/3, 2/3 and 1"


def cases() -> tuple[Case, ...]:
    """Return the cases of fairness."""
    rows: list[tuple[str, str, tuple[tuple[int, ...], ...], int, float]] = [
        (f"five-sessions-{flow + 1}", _FIVE_SESSIONS_SOURCE, _FIVE_SESSIONS, flow, thirds / 3)
        for flow, thirds in enumerate((2, 1, 1, 3, 1))
    ]
    rows += [
        (f"parking-lot-{name}", "every port is shared by two", _PARKING_LOT, flow, 1 / 2)
        for flow, name in enumerate(("long-flow", "short-flow"))
    ]
    return tuple(
        Case(
            name=f"topology.max-min-{name}",
            source=source,
            unit="of a port's rate",
            **around(expected, 1e-12),
            run=partial(_rate, paths, flow),
        )
        for name, source, paths, flow, expected in rows
    )


def _rate(paths: tuple[tuple[int, ...], ...], flow: int) -> float:
    return float(max_min_rates(paths, [1.0] * 3)[flow])
