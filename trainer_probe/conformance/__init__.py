"""What the trainer claims, and how it is obtained. One subject a file."""

from foundation.cases import Case
from trainer_probe.conformance import counts, optimizers, pipelines, plans, processes, volumes

SUBJECTS = (counts, volumes, plans, optimizers, pipelines, processes)


def cases() -> tuple[Case, ...]:
    """Return the room's cases."""
    return tuple(case for subject in SUBJECTS for case in subject.cases())
