"""Schema of a finding rule: what its findings mean, what they rest on, and the thresholds that decide."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from fabrictune.foundation.findings import Confidence, Finding, Severity

FAMILY = "*"  # ends the id of a rule that stands for several: `expect.*`


@dataclass(frozen=True, kw_only=True)
class Threshold:
    """A number that decides whether a rule has a finding, or how severe it is; a site may set another."""

    name: str
    default: float
    kind: Literal["fraction", "factor", "count"]  # a fraction is shown in percent
    meaning: str
    source: str  # where the default comes from
    least: float = 0.0
    most: float = math.inf

    def show(self, value: float) -> str:
        """Return a value as a file has it: `110 %`, `2`."""
        return f"{100 * value:g} %" if self.kind == "fraction" else f"{value:g}"

    @property
    def allowed(self) -> str:
        """The values a site may set: `50 % to 100 %`."""
        number = "a whole number" if self.kind == "count" else "a number"
        if math.isinf(self.most):
            return f"{number} of {self.show(self.least)} or more"
        return f"{self.show(self.least)} to {self.show(self.most)}"


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One rule; texts are sentences, but for the title and the next step, which complete `next:` of a finding."""

    id: str
    severity: Severity
    title: str
    meaning: str  # what a finding of the rule says
    impact: str  # why it matters
    evidence: str  # what it rests on
    next_step: str  # of a finding that has none of its own
    thresholds: tuple[Threshold, ...] = ()
    other_severities: tuple[tuple[Severity, str], ...] = ()  # each with the condition under which it applies

    def finding(
        self,
        *,
        entity: str,
        actual: str,
        expected: str,
        confidence: Confidence,
        evidence: Iterable[str] = (),
        next_step: str = "",
        severity: Severity | None = None,
        member: str = "",
    ) -> Finding:
        """Return a finding of this rule; `severity` is one of its others, `member` completes the id of a family."""
        severity = severity or self.severity
        assert severity in self.severities, f"{self.id} has no severity {severity.value}"
        assert self.is_family == bool(member), f"{self.id}: a member completes a family's id, and only that"
        return Finding(
            id=self.id.removesuffix(FAMILY) + member,
            severity=severity,
            entity=entity,
            expected=expected,
            actual=actual,
            next_step=next_step or self.next_step,
            confidence=confidence,
            evidence=tuple(evidence),
        )

    @property
    def severities(self) -> tuple[Severity, ...]:
        """The severities its findings can have, the usual one first."""
        return (self.severity, *(severity for severity, _ in self.other_severities))

    @property
    def is_family(self) -> bool:
        """Whether the rule stands for several ids."""
        return self.id.endswith(FAMILY)

    def covers(self, finding_id: str) -> bool:
        """Return whether a finding's id is of this rule."""
        return finding_id.startswith(self.id.removesuffix(FAMILY)) if self.is_family else finding_id == self.id

    def threshold(self, name: str) -> Threshold:
        """Return a threshold by its name, which it must have."""
        return next(threshold for threshold in self.thresholds if threshold.name == name)
