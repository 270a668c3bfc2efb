"""Audit rules in YAML: ours by topic, and those of a site; every mistake of a file is reported at once.

rules:
- id: trust-dscp
  severity: error
  title: NIC that does not trust DSCP
  check: {compare: nic.trust, is: equals, to: dscp}
  why: Its traffic gets the priority of its VLAN tag, or none.
  next: set trust to DSCP
expect:
  nic.mtu: 9000       # the site's own values: a rule each
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, cast, get_args

from fabrictune.fleet.audit.forms import OPERATORS, Compare, Condition, Count, Equal, Form, Scope
from fabrictune.fleet.facts.fact import Value
from fabrictune.foundation.documents import Document, Key, load_yaml
from fabrictune.foundation.errors import InputError, Mistake, nearest_name, require_one_of
from fabrictune.foundation.findings import Confidence, Severity

MAX_RULE_BYTES = 2**20
DEFAULT_PAGE = "docs/how-to/audit-a-cluster.md"
KEYS = ("id", "severity", "title", "check", "why", "next", "page", "confidence", "fix")
REQUIRED = ("id", "severity", "title", "check", "next")
FORM_KEYS: Mapping[str, tuple[str, ...]] = {
    "compare": ("compare", "is", "to", "to_fact", "along", "where"),
    "equal": ("equal", "across", "missing", "where"),
    "count": ("count", "of_nodes_with", "is", "to", "where"),
}
FIXES = ("nic", "switch", "env")
SCOPES = get_args(Scope)


@dataclass(frozen=True, kw_only=True)
class AuditRule:
    """One rule, and what would mend what it finds."""

    id: str
    severity: Severity
    title: str
    form: Form
    next_step: str
    why: str = ""
    page: str = DEFAULT_PAGE
    confidence: Confidence = Confidence.CONFIGURED
    fix: tuple[str, str] | None = None  # one of FIXES, and a line in which {node}, {device} and {expected} are filled


def our_rules() -> tuple[AuditRule, ...]:
    """Return the rules of this package."""
    return tuple(rule for path in _packaged("rules") for rule in read_rules(path))


def profile_names() -> tuple[str, ...]:
    """Return the names of vendors' defaults that can be asked for."""
    return tuple(path.stem for path in _packaged("profiles"))


def read_profile(name: str, *, where: str) -> tuple[AuditRule, ...]:
    """Return the rules of a vendor's published defaults; raises InputError."""
    require_one_of(name, profile_names(), where=where, what="profile", error=InputError)
    return read_rules(next(path for path in _packaged("profiles") if path.stem == name))


def read_rules(path: Path) -> tuple[AuditRule, ...]:
    """Return the rules in a file, and one for each expected value; raises InputError."""
    document = load_yaml(path, max_bytes=MAX_RULE_BYTES)
    reader = _Reader(document)
    rules = tuple(reader.read())
    if reader.mistakes:
        raise InputError(*reader.mistakes)
    return rules


class _Reader:
    """Reads one document's rules."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.mistakes: list[Mistake] = []

    def read(self) -> Iterator[AuditRule]:
        tree = self.document.tree
        if not isinstance(tree, dict):
            self._refuse((), "no mapping", "rules, expect and source")
            return
        self._known_keys(tree, (), ("rules", "expect", "source"))
        rules, expected = tree.get("rules", []), tree.get("expect", {})
        if not isinstance(rules, list):
            self._refuse(("rules",), "no list", "a list of rules")
        else:
            seen = set[str]()
            for number, row in enumerate(rules):
                rule = self._rule(row, ("rules", number))
                if rule and rule.id in seen:
                    self._refuse(("rules", number, "id"), f"the id {rule.id!r} a second time", "each once")
                elif rule:
                    seen.add(rule.id)
                    yield rule
        if not isinstance(expected, dict):
            self._refuse(("expect",), "no mapping", "values by the names of facts")
            return
        for name, value in expected.items():
            yield self._expectation(name, value)

    def _expectation(self, name: str, value: Any) -> AuditRule:
        values = self._values(value, ("expect", name))
        return AuditRule(
            id=f"expected-{name}",
            severity=Severity.ERROR,
            title=f"{name} other than expected",
            form=Compare(fact=name, operator="one_of" if len(values) > 1 else "equals", values=values),
            next_step=f"set it as {self.document.path.name} has it, or correct that",
            why=f"{self.document.where('expect', name)} says so.",
        )

    def _rule(self, row: Any, keys: tuple[Key, ...]) -> AuditRule | None:
        before = len(self.mistakes)
        if not isinstance(row, dict):
            self._refuse(keys, "no mapping", ", ".join(KEYS))
            return None
        self._known_keys(row, keys, KEYS)
        for name in REQUIRED:
            if name not in row:
                self._refuse(keys, f"no {name}", ", ".join(REQUIRED))
        texts = {name: row.get(name, "") for name in KEYS if name not in ("check", "fix")}
        for name, text in texts.items():
            if not isinstance(text, str):
                self._refuse((*keys, name), repr(text)[:40], "text")
        self._one_of(row.get("severity", "info"), tuple(Severity), (*keys, "severity"))
        self._one_of(row.get("confidence", "configured"), tuple(Confidence), (*keys, "confidence"))
        form, fix = self._form(row.get("check"), (*keys, "check")), self._fix(row.get("fix"), (*keys, "fix"))
        if len(self.mistakes) > before or form is None:
            return None
        return AuditRule(
            id=texts["id"],
            severity=Severity(texts["severity"]),
            title=texts["title"],
            form=form,
            next_step=texts["next"],
            why=texts["why"],
            page=texts["page"] or DEFAULT_PAGE,
            confidence=Confidence(texts["confidence"] or "configured"),
            fix=fix,
        )

    def _form(self, check: Any, keys: tuple[Key, ...]) -> Form | None:
        kind = next((name for name in FORM_KEYS if isinstance(check, dict) and name in check), "")
        if not kind:
            self._refuse(keys, "no check", "one of compare, equal and count, each with the name of a fact")
            return None
        self._known_keys(check, keys, FORM_KEYS[kind])
        fact, where = check[kind], self._conditions(check.get("where", []), (*keys, "where"))
        others = [check.get(name, "") for name in ("to_fact", "of_nodes_with")]
        for name in (fact, *others):
            if not isinstance(name, str) or (name is fact and not name):
                self._refuse((*keys, kind), repr(name)[:40], "the name of a fact")
                return None
        if kind == "equal":
            scope = self._one_of(check.get("across"), SCOPES, (*keys, "across"))
            missing = self._one_of(check.get("missing", "ignored"), ("ignored", "counts"), (*keys, "missing"))
            return Equal(fact=fact, scope=cast(Scope, scope), counts_missing=missing == "counts", where=where)
        operator = self._one_of(check.get("is"), tuple(OPERATORS), (*keys, "is"))
        values = self._values(check["to"], (*keys, "to")) if "to" in check else ()
        if kind == "count":
            if len(values) != 1 or not others[1]:
                self._refuse(keys, "no of_nodes_with, or no single to", "count, of_nodes_with, is, to")
                return None
            return Count(fact=fact, of_nodes_with=others[1], operator=operator, value=values[0], where=where)
        if bool(values) == bool(others[0]):
            self._refuse(keys, "to and to_fact, or neither", "one of them")
        along = self._one_of(check.get("along", "device"), ("device", "link"), (*keys, "along"))
        return Compare(
            fact=fact, operator=operator, values=values, to_fact=others[0], along_link=along == "link", where=where
        )

    def _conditions(self, rows: Any, keys: tuple[Key, ...]) -> tuple[Condition, ...]:
        found = []
        for number, row in enumerate(rows if isinstance(rows, list) else [rows]):
            place = (*keys, number) if isinstance(rows, list) else keys
            if not isinstance(row, dict) or not isinstance(row.get("fact"), str) or "to" not in row:
                self._refuse(place, "no condition", "fact, is and to")
                continue
            self._known_keys(row, place, ("fact", "is", "to"))
            operator = self._one_of(row.get("is"), tuple(OPERATORS), (*place, "is"))
            found.append(Condition(fact=row["fact"], operator=operator, values=self._values(row["to"], (*place, "to"))))
        return tuple(found)

    def _fix(self, fix: Any, keys: tuple[Key, ...]) -> tuple[str, str] | None:
        if fix is None:
            return None
        if isinstance(fix, dict) and len(fix) == 1:
            ((kind, line),) = fix.items()
            if kind in FIXES and isinstance(line, str):
                return kind, line
        self._refuse(keys, "no fix", f"one of {', '.join(FIXES)}, with a line")
        return None

    def _values(self, value: Any, keys: tuple[Key, ...]) -> tuple[Value, ...]:
        values = value if isinstance(value, list) else [value]
        if not values or not all(isinstance(one, str | int | float) for one in values):
            self._refuse(keys, repr(value)[:40], "a text or a number, or a list of such")
            return ("",)
        return tuple(("yes" if one else "no") if isinstance(one, bool) else one for one in values)

    def _one_of(self, found: Any, allowed: Sequence[str], keys: tuple[Key, ...]) -> str:
        if isinstance(found, str) and found in allowed:
            return found
        where, shown = self.document.where(*keys), repr(found)[:40]
        nearest = nearest_name(found, allowed) if isinstance(found, str) else ""
        self.mistakes.append(Mistake(where=where, found=shown, allowed=", ".join(allowed), nearest=nearest))
        return allowed[0]

    def _known_keys(self, row: Mapping[str, Any], keys: tuple[Key, ...], allowed: Sequence[str]) -> None:
        for key in row:
            if key not in allowed:
                self._one_of(key, allowed, (*keys, key))

    def _refuse(self, keys: tuple[Key, ...], found: str, allowed: str) -> None:
        self.mistakes.append(Mistake(where=self.document.where(*keys), found=found, allowed=allowed))


def _packaged(folder: str) -> list[Path]:
    place = Path(str(resources.files("fabrictune.fleet.audit").joinpath(folder)))
    return sorted(place.glob("*.yaml"))
