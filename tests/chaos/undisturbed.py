"""The undisturbed run of a session: what all others are compared with."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from fabrictune.trainer_probe.operation.events import Event


@dataclass(frozen=True, kw_only=True)
class Undisturbed:
    """The final parameters and the losses of a run in which nothing happens."""

    digest: str
    final_step: int
    losses: Mapping[str, float]  # by step
    duration_s: float
    step_s: float

    def first_difference(self, events: Sequence[Event]) -> int | None:
        """Return the first step whose loss is another in the events; None where all are the same."""
        for event in events:
            if event.kind == "step" and event.values["loss"] != self.losses[str(event.values["step"])]:
                return int(event.values["step"])
        return None

    def write(self, path: Path) -> None:
        """Write it as JSON."""
        path.write_text(json.dumps(asdict(self), indent=1))

    @classmethod
    def read(cls, path: Path) -> "Undisturbed":
        """Read what `write` wrote."""
        return cls(**json.loads(path.read_text()))
