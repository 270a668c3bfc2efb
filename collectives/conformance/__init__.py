"""What the collectives room claims, one subject a file."""

from collectives.conformance import bandwidth, measuring, proofs, startup
from foundation.cases import Case

SUBJECTS = (proofs, bandwidth, measuring, startup)


def cases() -> tuple[Case, ...]:
    """Return the room's cases."""
    return tuple(case for subject in SUBJECTS for case in subject.cases())
