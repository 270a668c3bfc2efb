"""What an audit rule may ask: three forms over facts, as data. There is no expression language and nothing is run.

compare   every fact of a name against values, or against another fact of the same device, or of the link's other end
equal     the facts of a name within a scope, against the value that most have
count     how many facts of a name each node has, of the nodes that have another

Facts that a rule compares with and that were not read are not judged, and counted. A rule that judged nothing did not
run.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from fabrictune.fleet.facts.fact import HOST, Fact, FleetFacts, Value, number_of, text_of

Operator = Callable[[Value, Sequence[Value]], bool]
Scope = Literal["fleet", "rail", "node"]
NOT_SET = "(not set)"


def _numeric(is_met: Callable[[float, float], bool]) -> Operator:
    def operator(value: Value, others: Sequence[Value]) -> bool:
        number, *limits = (number_of(one) for one in (value, *others))
        return number is not None and all(limit is not None and is_met(number, limit) for limit in limits)

    return operator


def is_same(first: Value, second: Value) -> bool:
    """Return whether two values are one: as numbers where both are, else as text in any case."""
    numbers = number_of(first), number_of(second)
    return numbers[0] == numbers[1] if None not in numbers else text_of(first).lower() == text_of(second).lower()


def _parts(value: Value) -> set[str]:
    return {part.strip().lower() for part in text_of(value).split(",")}


OPERATORS: Mapping[str, tuple[str, Operator]] = {  # with what is expected, in words
    "equals": ("{}", lambda value, others: any(is_same(value, other) for other in others)),
    "one_of": ("one of {}", lambda value, others: any(is_same(value, other) for other in others)),
    "not_equals": ("not {}", lambda value, others: not any(is_same(value, other) for other in others)),
    "none_of": ("none of {}", lambda value, others: not any(is_same(value, other) for other in others)),
    "at_least": ("at least {}", _numeric(lambda value, limit: value >= limit)),
    "at_most": ("at most {}", _numeric(lambda value, limit: value <= limit)),
    "contains": ("{} in it", lambda value, others: all(text_of(other).lower() in _parts(value) for other in others)),
    "begins_with": (
        "a value that begins with {}",
        lambda value, others: any(text_of(value).startswith(text_of(other)) for other in others),
    ),
}


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """A fact that a rule objects to."""

    fact: Fact
    expected: str
    actual: str
    target: str = ""  # the value that it should have, "" where that is not one
    evidence: tuple[str, ...] = ()


@dataclass
class Judged:
    """What one rule looked at."""

    num_judged: int = 0
    num_without: int = 0  # what they were to be compared with was not read
    outcomes: tuple[Outcome, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Condition:
    """A fact of the same device or node that must be so; one that was not read is not."""

    fact: str
    operator: str
    values: tuple[Value, ...]

    def holds(self, facts: FleetFacts, about: Fact) -> bool:
        """Return whether it holds for the device of a fact."""
        found = facts.of(self.fact, (about.node, about.device))
        return found is not None and OPERATORS[self.operator][1](found.value, self.values)


@dataclass(frozen=True, kw_only=True)
class Compare:
    """Each fact of a name against values, or against another fact."""

    fact: str
    operator: str
    values: tuple[Value, ...] = ()
    to_fact: str = ""
    along_link: bool = False
    where: tuple[Condition, ...] = ()

    @property
    def facts_named(self) -> tuple[str, ...]:
        """The facts that it looks at."""
        return tuple(filter(None, (self.fact, self.to_fact)))

    def judge(self, facts: FleetFacts) -> Judged:
        """Return what it objects to."""
        judged, outcomes = Judged(), list[Outcome]()
        for fact in facts.named(self.fact):
            if not all(condition.holds(facts, fact) for condition in self.where):
                continue
            other = self._other(facts, fact)
            if self.to_fact and other is None:
                judged.num_without += 1
                continue
            judged.num_judged += 1
            values = (other.value,) if other else self.values
            words, is_met = OPERATORS[self.operator]
            if not is_met(fact.value, values):
                shown = ", ".join(map(text_of, values))
                end = f" ({self.to_fact} of {other.entity})" if other else ""
                outcomes.append(
                    Outcome(
                        fact=fact,
                        expected=words.format(shown) + end,
                        actual=f"{_label(fact)} is {text_of(fact.value)}",
                        target=text_of(values[0]) if len(values) == 1 else "",
                        evidence=tuple(filter(None, (fact.where, other.where if other else ""))),
                    )
                )
        judged.outcomes = tuple(outcomes)
        return judged

    def _other(self, facts: FleetFacts, fact: Fact) -> Fact | None:
        if not self.to_fact:
            return None
        end = facts.other_end((fact.node, fact.device)) if self.along_link else (fact.node, fact.device)
        return facts.of(self.to_fact, end) if end else None


@dataclass(frozen=True, kw_only=True)
class Equal:
    """The facts of a name, or of each name of a family, against the value that most have in their scope."""

    fact: str
    scope: Scope
    counts_missing: bool = False  # a host without the fact differs from one with it
    where: tuple[Condition, ...] = ()

    @property
    def facts_named(self) -> tuple[str, ...]:
        """The facts that it looks at."""
        return (self.fact,)

    def judge(self, facts: FleetFacts) -> Judged:
        """Return what it objects to."""
        groups: dict[tuple[str, object], list[Fact]] = {}
        for fact in facts.named(self.fact):
            if all(condition.holds(facts, fact) for condition in self.where):
                groups.setdefault((fact.name, self._scope_of(facts, fact)), []).append(fact)
        if self.counts_missing:
            hosts = [node for node, role in facts.roles.items() if role == HOST]
            for (name, _), group in groups.items():
                without = set(hosts) - {fact.node for fact in group}
                group += (Fact(node=node, device="", name=name, value=NOT_SET, where="") for node in sorted(without))
        return Judged(
            num_judged=sum(map(len, groups.values())),
            outcomes=tuple(outcome for group in groups.values() for outcome in self._differing(group)),
        )

    def _scope_of(self, facts: FleetFacts, fact: Fact) -> object:
        if self.scope == "node":
            return fact.node
        return facts.rail_of((fact.node, fact.device)) if self.scope == "rail" else ""

    def _differing(self, group: Sequence[Fact]) -> Iterator[Outcome]:
        counts = Counter(text_of(fact.value) for fact in group)
        usual, number = counts.most_common(1)[0]
        first = next(fact for fact in group if text_of(fact.value) == usual)
        for fact in group:
            if text_of(fact.value) != usual:
                yield Outcome(
                    fact=fact,
                    expected=f"{usual}, as {number} of {len(group)} have",
                    actual=f"{_label(fact)} is {text_of(fact.value)}",
                    target="" if usual == NOT_SET else usual,
                    evidence=tuple(filter(None, (fact.where, first.where))),
                )


@dataclass(frozen=True, kw_only=True)
class Count:
    """How many facts of a name, each so, every node has that has another fact."""

    fact: str
    of_nodes_with: str
    operator: str
    value: Value
    where: tuple[Condition, ...] = ()

    @property
    def facts_named(self) -> tuple[str, ...]:
        """The facts that it looks at."""
        return self.fact, self.of_nodes_with

    def judge(self, facts: FleetFacts) -> Judged:
        """Return what it objects to."""
        nodes = {fact.node: fact for fact in facts.named(self.of_nodes_with)}
        counts: Counter[str] = Counter()
        for fact in facts.named(self.fact):
            counts[fact.node] += all(condition.holds(facts, fact) for condition in self.where)
        words, is_met = OPERATORS[self.operator]
        outcomes = [
            Outcome(
                fact=Fact(node=node, device="", name=self.fact, value=float(counts[node]), where=fact.where),
                expected=words.format(text_of(self.value)),
                actual=f"{counts[node]} of {self.fact}",
                evidence=(fact.where,),
            )
            for node, fact in nodes.items()
            if not is_met(float(counts[node]), (self.value,))
        ]
        return Judged(num_judged=len(nodes), outcomes=tuple(outcomes))


Form = Compare | Equal | Count


def _label(fact: Fact) -> str:
    """Return a fact's name as people write it: `NCCL_IB_TC` of job.env.NCCL_IB_TC, `mtu` of nic.mtu."""
    return fact.name.removeprefix("job.env.").partition(".")[2].replace("_", " ") or fact.name.removeprefix("job.env.")
