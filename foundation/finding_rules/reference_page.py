"""The page docs/reference/findings.md, generated from the catalog: `make reference` writes it."""

from collections.abc import Iterator
from pathlib import Path

from fabrictune.foundation.finding_rules.catalog import SUBJECTS, find_rule
from fabrictune.foundation.finding_rules.schema import Rule, Threshold

PATH = Path(__file__).resolve().parents[2] / "docs" / "reference" / "findings.md"
HEAD = """# Findings

A finding is an observation of a run, a file or a measurement that deserves a person's attention. Each is of one of the
rules below: what it means, why it matters, what it rests on, the thresholds that decide, and what to do next.

| severity | meaning |
| --- | --- |
| critical | results are wrong, or data are corrupted |
| error | something is broken, or a requirement is not met; exit code 1 unless `--fail-on` says otherwise |
| warning | something costs performance, or is probably not meant |
| info | worth knowing |

A finding also says whether its value was *measured*, is *configured*, or was *predicted*.

## Settings of a site

`--rules FILE`, or the variable `FABRICTUNE_RULES`, sets severities and thresholds by rule. Severity `off` switches a
rule off. Fractions and factors are percentages or numbers.

```yaml
rules:
  ecmp.link-overloaded: {severity: error, load: 110 %}
  netsim.paused-hosts: {paused: 1 %}
  netsim.capture-truncated: {severity: off}
```

The record, the terminal, the page and `--json` say which file applied and what it changed. `fabrictune rules` lists the
rules, `fabrictune rules ID` explains one.

This page is generated from `foundation/finding_rules` by `make reference`.
"""
THRESHOLD_HEAD = "| threshold | default | meaning | source of the default |\n| --- | --- | --- | --- |"


def reference_page() -> str:
    """Return the page's text."""
    sections = [f"## {subject}\n\n" + "\n\n".join(map(_section, rules)) for subject, rules in SUBJECTS.items()]
    return "\n".join([HEAD, *(f"{section}\n" for section in sections)])


def explain(rule: Rule) -> Iterator[str]:
    """Yield a rule as lines for people: meaning, evidence, next step, thresholds, and its place on the page."""
    yield f"{rule.meaning} {rule.impact}"
    yield f"Evidence: {_sentence(rule.evidence)}"
    yield f"Next step: {_sentence(rule.next_step)}"
    for threshold in rule.thresholds:
        yield f"Threshold {threshold.name}, by default {threshold.show(threshold.default)}: {threshold.meaning}."
        yield f"  {threshold.source}"
    for severity, condition in rule.other_severities:
        yield f"Severity {severity.value} where {condition}."
    yield reference(rule.id)


def reference(finding_id: str) -> str:
    """Return the place of a finding's rule on the page, relative to the repository; "" for one of another version."""
    rule = find_rule(finding_id)
    return f"docs/reference/{PATH.name}#{rule.id}" if rule else ""


def _section(rule: Rule) -> str:
    return "\n\n".join(_paragraphs(rule))


def _paragraphs(rule: Rule) -> Iterator[str]:
    yield f'### <a id="{rule.id}"></a>{rule.id}'
    yield f"**{rule.title}** ({_severity(rule)})"
    yield f"{rule.meaning} {rule.impact}"
    yield f"Evidence: {_sentence(rule.evidence)}"
    yield f"Next step: {_sentence(rule.next_step)}"
    if rule.thresholds:
        yield f"{THRESHOLD_HEAD}\n" + "\n".join(map(_threshold, rule.thresholds))


def _severity(rule: Rule) -> str:
    others = (f"{severity.value} where {condition}" for severity, condition in rule.other_severities)
    return "; ".join((rule.severity.value, *others))


def _threshold(threshold: Threshold) -> str:
    return f"| `{threshold.name}` | {threshold.show(threshold.default)} | {threshold.meaning} | {threshold.source} |"


def _sentence(text: str) -> str:
    return f"{text.removesuffix('.')}."


if __name__ == "__main__":
    PATH.write_text(reference_page())
