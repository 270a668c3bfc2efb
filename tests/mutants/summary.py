"""Summary of results: a table by area, and the survivors that nobody has argued for."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.mutants.mutation import Mutation

COLUMNS = ("made", "tried", "killed", "survived", "not compiled", "argued", "share")


@dataclass(frozen=True, kw_only=True)
class Result:
    """What came of a mutant: killed, survived or not compiled; and by which test or limit."""

    state: str
    by: str


def summary(
    num_made: Mapping[str, int],
    results: Mapping[str, Sequence[tuple[Mutation, Result]]],
    reasons: Mapping[tuple[str, str, str], str],
) -> str:
    """Return the text. The share is that of the killed among the tried, less the argued and those not compiled."""
    rows = [(name, _counts(num_made[name], pairs, reasons)) for name, pairs in results.items()]
    names = [column for column in COLUMNS if column != "share"]
    rows.append(("all", {name: sum(counts[name] for _, counts in rows) for name in names}))
    lines = [f"{'area':<12}" + "".join(f"{column:>14}" for column in COLUMNS)]
    for name, counts in rows:
        relevant = counts["killed"] + counts["survived"]
        share = f"{counts['killed'] / relevant:.1%}" if relevant else "-"
        lines.append(f"{name:<12}" + "".join(f"{counts[column]:>14}" for column in names) + f"{share:>14}")
    living = [
        mutation
        for pairs in results.values()
        for mutation, result in pairs
        if result.state == "survived" and mutation.change not in reasons
    ]
    lines += ["", "survivors:" if living else "no survivors"]
    lines += [f"{one.path}:{one.line}\n  - {one.before}\n  + {one.after}" for one in sorted(living, key=_place)]
    return "\n".join(lines)


def _counts(
    num_made: int, pairs: Sequence[tuple[Mutation, Result]], reasons: Mapping[tuple[str, str, str], str]
) -> dict[str, int]:
    states = Counter(
        "argued" if result.state == "survived" and mutation.change in reasons else result.state
        for mutation, result in pairs
    )
    states_of_all = {name: states[name] for name in ("killed", "survived", "not compiled", "argued")}
    return {"made": num_made, "tried": len(pairs) - states["not compiled"], **states_of_all}


def _place(mutation: Mutation) -> tuple[str, int]:
    return mutation.path, mutation.line
