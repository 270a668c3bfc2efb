"""`fabrictune conformance`: the published cases, expected and actual values."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from fabrictune.cli.framework.options import json_option, quiet_option
from fabrictune.cli.framework.output import print_json, print_lines, print_table
from fabrictune.cli.framework.progress import progress_bar

if TYPE_CHECKING:
    from fabrictune.conformance.suite import CaseResult


@click.command("conformance")
@click.argument("prefixes", metavar="[PREFIX]...", nargs=-1)
@quiet_option
@json_option
def run_all(prefixes: tuple[str, ...], quiet: bool, as_json: bool) -> int:
    """Run the published cases whose names begin with a PREFIX, or all of them, and print every result.

    The exit code is 1 if an exact case (trust A: closed forms, published pseudo-code) is out of tolerance.

    \b
    Example:
      fabrictune conformance
      fabrictune conformance netsim. cc.dcqcn --json
    """
    from fabrictune.conformance.suite import collect_cases, has_failed, run_cases
    from fabrictune.foundation.errors import InputError, Mistake

    cases = collect_cases(prefixes)
    if not cases:
        raise InputError(Mistake(where="PREFIX", found=f"no case begins with {' or '.join(prefixes)}"))
    with progress_bar("conformance", is_quiet=quiet or as_json) as progress:
        results = run_cases(cases, progress)
    if as_json:
        print_json([result.as_json() for result in results])
    else:
        shown = [result for result in results if not (quiet and result.has_passed)]
        print_table(("name", "trust", "expected", "actual", "tolerance", "unit", "passed", "source"), _rows(shown))
        num_passed = sum(result.has_passed for result in results)
        print_lines([f"{num_passed} of {len(results)} cases within tolerance"])
    return int(has_failed(results))


def _rows(results: "Sequence[CaseResult]") -> list[tuple[str, ...]]:
    return [
        (
            result.case.name,
            result.case.trust,
            f"{result.case.expected:.6g}",
            result.error if result.actual is None else f"{result.actual:.6g}",
            f"{result.case.low:.6g} to {result.case.high:.6g}",
            result.case.unit,
            "yes" if result.has_passed else "NO",
            result.case.source,
        )
        for result in results
    ]
