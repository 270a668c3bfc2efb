"""Site files: severities and thresholds of rules in YAML, every mistake reported at once.

rules:
  ecmp.link-overloaded: {severity: error, load: 110 %}
  netsim.capture-truncated: {severity: off}
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from fabrictune.foundation.documents import Document, load_yaml
from fabrictune.foundation.errors import InputError, Mistake, UnitError, nearest_name, quote
from fabrictune.foundation.finding_rules.catalog import RULES
from fabrictune.foundation.finding_rules.schema import Rule, Threshold
from fabrictune.foundation.finding_rules.settings import RuleSettings
from fabrictune.foundation.findings import Severity
from fabrictune.foundation.units import parse_ratio

MAX_SITE_BYTES = 2**20
TOP_KEY, SEVERITY_KEY, OFF = "rules", "severity", "off"
SEVERITIES = (*(severity.value for severity in Severity), OFF)


def read_site_file(path: Path) -> RuleSettings:
    """Return the settings in a site file; raises InputError with every mistake of it."""
    document = load_yaml(path, max_bytes=MAX_SITE_BYTES)
    site = _Site(document)
    site.read()
    if site.mistakes:
        raise InputError(*site.mistakes)
    digest = hashlib.sha256(document.text.encode()).hexdigest()
    return RuleSettings(severities=site.severities, thresholds=site.thresholds, file=str(path), sha256=digest)


class _Site:
    """Settings and mistakes of a document, as far as it has been read."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.severities: dict[str, Severity | None] = {}
        self.thresholds: dict[str, dict[str, float]] = {}
        self.mistakes: list[Mistake] = []

    def read(self) -> None:
        for key, rules in self._entries(self.document.tree, ()):
            if key != TOP_KEY:
                self._refuse_name((key,), "key", key, (TOP_KEY,))
                continue
            for rule_id, values in self._entries(rules, (TOP_KEY,)):
                if rule := RULES.get(rule_id):
                    self._read_rule(rule, values)
                else:
                    self._refuse_name((TOP_KEY, rule_id), "rule", rule_id, tuple(RULES), is_long=True)

    def _read_rule(self, rule: Rule, values: Any) -> None:
        thresholds = {threshold.name: threshold for threshold in rule.thresholds}
        for key, value in self._entries(values, (TOP_KEY, rule.id)):
            place = (TOP_KEY, rule.id, key)
            if key == SEVERITY_KEY:
                self._read_severity(rule, value, place)
            elif key in thresholds:
                self._read_threshold(rule, thresholds[key], value, place)
            else:
                what = f"threshold of {rule.id}"
                self._refuse_name(place, what, key, (SEVERITY_KEY, *thresholds))

    def _read_severity(self, rule: Rule, value: Any, place: Sequence[str]) -> None:
        if not isinstance(value, str) or value not in SEVERITIES:
            self._refuse_name(place, "severity", str(value), SEVERITIES)
        else:
            self.severities[rule.id] = None if value == OFF else Severity(value)

    def _read_threshold(self, rule: Rule, threshold: Threshold, value: Any, place: Sequence[str]) -> None:
        where = self.document.where(*place)
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            self.mistakes.append(Mistake(where=where, found=f"{value!r} where a number is needed"))
            return
        try:
            number = parse_ratio(str(value), where=where)
        except UnitError as error:
            self.mistakes.extend(error.mistakes)
            return
        is_whole = threshold.kind != "count" or number == int(number)
        if not threshold.least <= number <= threshold.most or not is_whole:
            self.mistakes.append(Mistake(where=where, found=str(value), allowed=threshold.allowed))
        else:
            self.thresholds.setdefault(rule.id, {})[threshold.name] = number

    def _entries(self, values: Any, place: Sequence[str]) -> Iterator[tuple[str, Any]]:
        """Yield the entries of a mapping; anything else is a mistake."""
        if isinstance(values, Mapping):
            yield from values.items()
            return
        example = f"{{{SEVERITY_KEY}: {OFF}}}" if len(place) > 1 else "ecmp.link-overloaded: {load: 110 %}"
        self.mistakes.append(
            Mistake(
                where=self.document.where(*place),
                found=f"{quote(str(values))} where a mapping is needed",
                next_step=f"write it as `{example}`",
            )
        )

    def _refuse_name(
        self, place: Sequence[str], what: str, found: str, allowed: Sequence[str], *, is_long: bool = False
    ) -> None:
        self.mistakes.append(
            Mistake(
                where=self.document.where(*place),
                found=f"unknown {what} {quote(found)}",
                allowed="" if is_long else ", ".join(allowed),
                nearest=nearest_name(found, allowed),
                next_step="fabrictune rules lists them" if is_long else "",
            )
        )
