"""What was learned of each group of choices, as lines for people and JSON values."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from fabrictune.topology.hash_learning.choices import Choice, ChoiceGroup, group_choices
from fabrictune.topology.hash_learning.fields import field_uses
from fabrictune.topology.hash_learning.known_functions import FIXED, KnownFunction, find_known_functions
from fabrictune.topology.hash_learning.linear_choice import MARGIN, LinearChoice, NoLinearChoice, learn_linear_choice
from fabrictune.topology.hash_learning.polynomials import PolynomialSearch, find_polynomial

MAX_SHOWN = 5


@dataclass(frozen=True, kw_only=True)
class LearnedGroup:
    """The outcome of one group."""

    group: ChoiceGroup
    choice: LinearChoice | NoLinearChoice
    functions: tuple[KnownFunction, ...] = ()
    search: PolynomialSearch | None = None

    @property
    def linear_choice(self) -> LinearChoice | None:
        """What was learned, None where nothing was."""
        return self.choice if isinstance(self.choice, LinearChoice) else None

    @property
    def lines(self) -> tuple[str, ...]:
        """The outcome for people."""
        head = f"{self.group.switch}: {len(self.group)} choices among {len(self.group.next_hops)} next hops"
        if self.group.num_changing:
            head += f", {self.group.num_changing} headers left out whose next hop changed"
        return (head, *(f"  {line}" for line in self._outcome()))

    def _outcome(self) -> Iterator[str]:
        choice = self.choice
        if isinstance(choice, NoLinearChoice):
            if choice.num_missing:
                yield f"hash unknown: needs {choice.num_missing} more choices with other headers"
            else:
                yield (
                    f"hash not linear: no exclusive or of header bits predicts the next hop; "
                    f"{choice.num_unknowns + MARGIN} choices show a linear hash"
                )
            return
        if choice.is_whole:
            yield f"linear hash, next hop known; {choice.num_confirmed} of {len(self.group)} choices agree"
        else:
            sets = len(set(choice.codes))
            yield (
                f"linear in part: next hop known up to {sets} sets of them (no power of two, or too few choices); "
                f"{choice.num_confirmed} of {len(self.group)} choices agree"
            )
        for field, use in field_uses(choice).items():
            yield f"{field.replace('_', ' ')}: {use}"
        yield f"function: {_listed([_function_text(function) for function in self.functions]) or 'none of the table'}"
        if self.search is not None:
            yield f"polynomial: {self._polynomial_text(self.search)}"
        yield f"seed: {self._seed_text()}"

    def _seed_text(self) -> str:
        shifts = sorted({function.index_shift for function in self.functions if function.index_shift is not None})
        if not shifts:
            return "unknown; it only permutes the next hops"
        numbers = " or ".join(map(str, shifts))
        return f"exclusive or of the index with {numbers}, if next hops are numbered in the order of their names"

    @staticmethod
    def _polynomial_text(search: PolynomialSearch) -> str:
        if search.polynomials:
            return _listed(list(dict.fromkeys(map(str, search.polynomials))))
        if not search.degrees:
            return "not searched; too few header bits were seen changing"
        return f"none of degree {', '.join(map(str, search.degrees))}"

    def as_json(self) -> dict[str, Any]:
        """Return the outcome as JSON values."""
        choice = self.choice
        shown: dict[str, Any] = {"switch": self.group.switch, "next_hops": list(self.group.next_hops)}
        shown |= {"num_choices": len(self.group), "num_changing": self.group.num_changing}
        if isinstance(choice, NoLinearChoice):
            return {**shown, "is_linear": False if choice.is_refuted else None, "num_missing": choice.num_missing}
        return {
            **shown,
            "is_linear": True,
            "is_whole": choice.is_whole,
            "num_confirmed": choice.num_confirmed,
            "fields": field_uses(choice),
            "functions": [asdict(function) for function in self.functions],
            "polynomials": [asdict(polynomial) for polynomial in self.search.polynomials] if self.search else [],
            "searched_degrees": list(self.search.degrees) if self.search else [],
        }


def learn_hashes(choices: Sequence[Choice]) -> tuple[LearnedGroup, ...]:
    """Return what is learned of each group of choices, the largest group first."""
    return tuple(_learn(group) for group in group_choices(choices))


def _learn(group: ChoiceGroup) -> LearnedGroup:
    choice = learn_linear_choice(group)
    if isinstance(choice, NoLinearChoice):
        return LearnedGroup(group=group, choice=choice)
    return LearnedGroup(
        group=group, choice=choice, functions=find_known_functions(choice), search=find_polynomial(choice)
    )


def _function_text(function: KnownFunction) -> str:
    fields = ", ".join(field for field in function.fields if field not in FIXED)
    return f"{function.name} of {fields}" + (f", rotated by {function.rotation}" if function.rotation else "")


def _listed(texts: Sequence[str]) -> str:
    more = f", and {len(texts) - MAX_SHOWN} more" if len(texts) > MAX_SHOWN else ""
    return " or ".join(texts[:MAX_SHOWN]) + more
