"""`fabrictune rules`: what each rule of findings means, and what a site has set."""

import textwrap
from dataclasses import asdict

import click

from fabrictune.cli.framework.options import json_option
from fabrictune.cli.framework.output import print_json, print_lines, print_table
from fabrictune.cli.framework.rules import print_rules, rules_json, rules_option, site_rules
from fabrictune.foundation.errors import InputError, Mistake, nearest_name
from fabrictune.foundation.finding_rules.catalog import RULES, find_rule
from fabrictune.foundation.finding_rules.reference_page import explain, reference
from fabrictune.foundation.finding_rules.schema import Rule

WIDTH = 110


@click.command()
@click.argument("rule_id", metavar="[ID]", required=False)
@rules_option
@json_option
def rules(rule_id: str | None, as_json: bool) -> None:
    """List the rules of findings, or explain the rule of one ID: meaning, evidence, thresholds, next step.

    \b
    Example:
      fabrictune rules
      fabrictune rules ecmp.link-overloaded
      fabrictune rules --rules site.yaml
    """
    chosen = list(RULES.values()) if rule_id is None else [_find(rule_id)]
    if as_json:
        print_json({"catalog": [_as_json(rule) for rule in chosen], **rules_json()})
        return
    if rule_id is None:
        print_table(("rule", "severity", "finding"), [(rule.id, _severity(rule), rule.title) for rule in chosen])
    else:
        print_lines([f"{rule_id}: {chosen[0].title} ({_severity(chosen[0])})"])
        print_lines(line for text in explain(chosen[0]) for line in textwrap.wrap(text, WIDTH))
    print_rules()


def _find(rule_id: str) -> Rule:
    rule = RULES.get(rule_id) or find_rule(rule_id)
    if rule is None:
        raise InputError(
            Mistake(
                where="fabrictune rules",
                found=f"unknown rule {rule_id!r}",
                nearest=nearest_name(rule_id, RULES),
                next_step="fabrictune rules lists them",
            )
        )
    return rule


def _severity(rule: Rule) -> str:
    severity = site_rules().severities.get(rule.id, rule.severity)
    return "off" if severity is None else severity.value


def _as_json(rule: Rule) -> dict[str, object]:
    return {
        **asdict(rule),
        "severity": _severity(rule),
        "other_severities": [
            {"severity": severity.value, "where": condition} for severity, condition in rule.other_severities
        ],
        "thresholds": [
            {
                "name": threshold.name,
                "value": site_rules().threshold(rule, threshold.name),
                "default": threshold.default,
                "unit": threshold.kind,
                "meaning": threshold.meaning,
                "source": threshold.source,
            }
            for threshold in rule.thresholds
        ],
        "reference": reference(rule.id),
    }
