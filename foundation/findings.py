"""Findings: observations of a run that deserve a person's attention.

A finding is built by its rule (`finding_rules`), which gives it its id, its severity and what to do next.
"""

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """Severity of a finding; ordered from least to most."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"
    CRITICAL = "critical"

    @property
    def rank(self) -> int:
        """Position in the order, 0 for the least."""
        return list(Severity).index(self)


class Confidence(StrEnum):
    """Source of the actual value of a finding."""

    MEASURED = "measured"
    CONFIGURED = "configured"
    PREDICTED = "predicted"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """An observation that deserves a person's attention."""

    id: str  # names the rule, e.g. "ecmp.link-overloaded"
    severity: Severity
    entity: str  # node, port, link, rail or job it is about
    expected: str
    actual: str
    next_step: str
    confidence: Confidence
    evidence: tuple[str, ...] = ()  # file and line, or table and row
