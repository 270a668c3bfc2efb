"""`fabrictune conformance`: the published cases, expected beside got."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from fabrictune.cli.framework.options import json_option, quiet_option
from fabrictune.cli.framework.output import print_json, print_lines, print_table
from fabrictune.cli.framework.progress import progress_bar

if TYPE_CHECKING:
    from fabrictune.conformance.suite import Outcome


@click.command("conformance")
@click.argument("prefixes", metavar="[PREFIX]...", nargs=-1)
@quiet_option
@json_option
def run_all(prefixes: tuple[str, ...], quiet: bool, as_json: bool) -> int:
    """Rerun the published cases whose names begin with a PREFIX, or all of them, and print the misses with the hits.

    The exit code is 1 if an exact case (class A: closed forms, published pseudo-code) misses its band.

    \b
    Example:
      fabrictune conformance
      fabrictune conformance netsim. cc.dcqcn --json
    """
    from fabrictune.conformance.suite import collect, has_failed, run_cases
    from fabrictune.foundation.errors import InputError, Mistake

    cases = collect(prefixes)
    if not cases:
        raise InputError(Mistake(where="PREFIX", found=f"no case begins with {' or '.join(prefixes)}"))
    with progress_bar("conformance", is_quiet=quiet or as_json) as progress:
        outcomes = run_cases(cases, progress)
    if as_json:
        print_json([outcome.as_json() for outcome in outcomes])
    else:
        shown = [outcome for outcome in outcomes if not (quiet and outcome.has_passed)]
        print_table(("name", "class", "expected", "got", "band", "unit", "passed", "source"), _rows(shown))
        num_passed = sum(outcome.has_passed for outcome in outcomes)
        print_lines([f"{num_passed} of {len(outcomes)} cases are in their bands"])
    return int(has_failed(outcomes))


def _rows(outcomes: "Sequence[Outcome]") -> list[tuple[str, ...]]:
    return [
        (
            outcome.case.name,
            outcome.case.trust,
            f"{outcome.case.expected:.6g}",
            outcome.error if outcome.got is None else f"{outcome.got:.6g}",
            f"{outcome.case.low:.6g} to {outcome.case.high:.6g}",
            outcome.case.unit,
            "yes" if outcome.has_passed else "NO",
            outcome.case.source,
        )
        for outcome in outcomes
    ]
