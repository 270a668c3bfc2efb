"""What the collectives room claims, one subject a file."""

from collectives.conformance import bandwidth, proofs
from foundation.cases import Case

SUBJECTS = (proofs, bandwidth)


def cases() -> tuple[Case, ...]:
    """Return the room's cases."""
    return tuple(case for subject in SUBJECTS for case in subject.cases())
