"""What the packet engine claims: closed forms, bounds that nothing may beat, losslessness, laws. One subject a file."""

from foundation.cases import Case
from netsim.conformance import (
    bounds,
    closed_forms,
    deadlock,
    faults,
    laws,
    path_choice,
    pausing,
    pfc,
    queueing,
    transport,
)

SUBJECTS = (closed_forms, bounds, queueing, pfc, pausing, transport, faults, path_choice, deadlock, laws)


def cases() -> tuple[Case, ...]:
    """Return the room's cases."""
    return tuple(case for subject in SUBJECTS for case in subject.cases())
