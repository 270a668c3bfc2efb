"""Settings of the rules at a site: severities, thresholds, and rules that are off."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from fabrictune.foundation.checks import Check
from fabrictune.foundation.finding_rules.catalog import RULES, find_rule
from fabrictune.foundation.finding_rules.schema import Rule
from fabrictune.foundation.findings import Finding, Severity

if TYPE_CHECKING:
    from fabrictune.foundation.records import RunRecord


@dataclass(frozen=True, kw_only=True)
class RuleSettings:
    """Severities and thresholds that differ from the catalog's, by the ids of their rules."""

    severities: Mapping[str, Severity | None] = field(default_factory=dict)  # None switches a rule off
    thresholds: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    file: str = ""  # that sets them, "" for the catalog alone
    sha256: str = ""  # of the file

    def threshold(self, rule: Rule, name: str) -> float:
        """Return a threshold of a rule."""
        return self.thresholds.get(rule.id, {}).get(name, rule.threshold(name).default)

    @property
    def off(self) -> tuple[str, ...]:
        """Ids of the rules that are off."""
        return tuple(rule_id for rule_id, severity in self.severities.items() if severity is None)

    def apply(self, findings: Iterable[Finding]) -> tuple[Finding, ...]:
        """Return the findings with the site's severities, without those of rules that are off."""
        severities = [(finding, self._severity(finding)) for finding in findings]
        return tuple(replace(finding, severity=severity) for finding, severity in severities if severity is not None)

    def apply_to(self, record: "RunRecord") -> "RunRecord":
        """Return a record whose findings are the site's; its head says which file applied, and what it changed.

        A check of a rule that is off has not run.
        """
        if not self.file:
            return record
        checks = None if record.checks is None else self.apply_to_checks(record.checks)
        run = {**record.run, "rules": self.as_json()}
        return replace(record, run=run, findings=self.apply(record.findings), checks=checks)

    def apply_to_checks(self, checks: Iterable[Check]) -> tuple[Check, ...]:
        """Return the checks; one of a rule that is off has not run."""
        reason = f"rule switched off by {self.file}"
        return tuple(
            replace(check, num_found=0, reason=reason) if self._is_off(check.rule) else check for check in checks
        )

    def as_json(self) -> dict[str, Any]:
        """Return the file, its digest, and what it changes, as JSON values."""
        severities = {rule_id: severity.value for rule_id, severity in self.severities.items() if severity is not None}
        return {
            "file": self.file,
            "sha256": self.sha256,
            "off": list(self.off),
            "severities": severities,
            "thresholds": {
                rule_id: {name: RULES[rule_id].threshold(name).show(value) for name, value in values.items()}
                for rule_id, values in self.thresholds.items()
            },
        }

    @property
    def summary(self) -> str:
        """One line: the file, then what it changes."""
        return describe_site(self.as_json())

    def _severity(self, finding: Finding) -> Severity | None:
        rule = find_rule(finding.id)
        return self.severities.get(rule.id, finding.severity) if rule else finding.severity

    def _is_off(self, finding_id: str) -> bool:
        rule = find_rule(finding_id)
        return rule is not None and rule.id in self.off


CATALOG_SETTINGS = RuleSettings()


def describe_site(values: Any) -> str:
    """Return one line on what `as_json` wrote: the file, then what it changes; "" for anything else."""
    match values:
        case {"file": str(file), "off": list(off), "severities": dict(severities), "thresholds": dict(thresholds)}:
            changed = [
                *(f"{rule_id} is off" for rule_id in off),
                *(f"{rule_id} is {severity}" for rule_id, severity in severities.items()),
                *(
                    f"{rule_id} {name} is {shown}"
                    for rule_id, own in thresholds.items()
                    if isinstance(own, dict)
                    for name, shown in own.items()
                ),
            ]
            return f"{file}: {', '.join(changed) or 'as the catalog'}"
    return ""
