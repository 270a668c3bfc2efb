"""Results of the tests of one node, as they go between processes in JSON."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

MAX_FAULTS = 20
MAX_TEXT = 400


@dataclass(frozen=True, kw_only=True)
class NodeResult:
    """What one test of one node found."""

    test: str
    figures: Mapping[str, float] = field(default_factory=dict)  # by names of `figures.FIGURES`, compared with peers'
    faults: tuple[str, ...] = ()  # that need no peer to be known
    digest: str = ""  # bits that nodes of the same kind have in common
    kind: str = ""  # of the node, where that decides its bits
    skipped: str = ""  # why there is no result
    elapsed_s: float = 0.0

    def as_json(self) -> dict[str, Any]:
        """Return the result as JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """Return the result that `as_json` made, texts cut to what a person reads; raises KeyError or TypeError."""
        return cls(
            test=str(values["test"])[:MAX_TEXT],
            figures={str(name): float(value) for name, value in values["figures"].items()},
            faults=tuple(str(fault)[:MAX_TEXT] for fault in values["faults"][:MAX_FAULTS]),
            digest=str(values["digest"])[:MAX_TEXT],
            kind=str(values["kind"])[:MAX_TEXT],
            skipped=str(values["skipped"])[:MAX_TEXT],
            elapsed_s=float(values["elapsed_s"]),
        )
