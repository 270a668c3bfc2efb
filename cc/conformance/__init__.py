"""What the laws claim, against published results. One law a file, and their agreement with themselves compiled.

The compiler is imported by the cases that need it, so that listing them is quick.
"""

from cc.conformance import agreement, barre, dcqcn, dcqcn_firmware, dcqcn_fluid, swift
from foundation.cases import Case

SUBJECTS = (dcqcn_fluid, dcqcn, dcqcn_firmware, swift, barre, agreement)


def cases() -> tuple[Case, ...]:
    """Return the room's cases."""
    return tuple(case for subject in SUBJECTS for case in subject.cases())
