"""`fabrictune coll ras`: the state of a running job by NCCL's RAS."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fabrictune.cli.framework.findings import conclude, judged_json, print_findings
from fabrictune.cli.framework.options import fail_on_option, json_option
from fabrictune.cli.framework.output import print_json, print_lines, print_table
from fabrictune.foundation.wording import count

if TYPE_CHECKING:
    from fabrictune.collectives.nccl.ras_json import RasCommunicator, RasStatus

MAX_ROWS = 20  # communicators that are shown, the largest first


@click.command()
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@fail_on_option
@json_option
def ras(file: Path, fail_on: str, as_json: bool) -> int:
    """Say which ranks of a running job do not answer, have an error or are behind the others.

    FILE is what `ncclras -f json` prints (NCCL 2.28.7 and later). Ranks of a busy job differ by a few collectives: ask
    again and compare.

    \b
    Example:
      fabrictune coll ras status.json
    """
    from fabrictune.collectives.nccl.ras_checks import check_ras
    from fabrictune.collectives.nccl.ras_json import read_ras

    status = read_ras(file)
    report = check_ras(status)
    if as_json:
        print_json({**_values(status), **judged_json(report)})
        return conclude(fail_on, report)
    print_lines([f"NCCL {status.version or 'of a version not said'}, {status.time or 'time not said'}"])
    shown = sorted(status.communicators, key=lambda one: -one.num_ranks)[:MAX_ROWS]
    print_table(("communicator", "ranks", "answered", "missing", "hosts", "launched"), [_cells(one) for one in shown])
    if len(status.communicators) > len(shown):
        print_lines([f"... and {count(len(status.communicators) - len(shown), 'smaller communicator')}"])
    print_findings(report)
    return conclude(fail_on, report)


def _cells(one: "RasCommunicator") -> tuple[str, ...]:
    hosts = {rank.host for rank in one.ranks} | {rank.host for rank in one.missing}
    return (
        one.name,
        *(str(len(part)) for part in (range(one.num_ranks), one.ranks, one.missing, hosts)),
        _launched(one),
    )


def _launched(one: "RasCommunicator") -> str:
    """Return how many of each operation the ranks launched, from the least to the most."""
    parts = []
    for place, name in enumerate(one.operations):
        counts = [rank.counts[place] for rank in one.ranks]
        least, most = min(counts, default=0), max(counts, default=0)
        if most:
            parts.append(f"{name} {most:,}" if least == most else f"{name} {least:,} to {most:,}")
    return ", ".join(parts) or "nothing"


def _values(status: "RasStatus") -> dict[str, Any]:
    return {
        "nccl": status.version or None,
        "time": status.time or None,
        "communicators": [
            {
                "name": one.name,
                "num_ranks": one.num_ranks,
                "num_answered": len(one.ranks),
                "missing_ranks": [{"rank": rank.rank, "host": rank.host} for rank in one.missing],
                "launched": [
                    {
                        "operation": name,
                        "num_least": min((rank.counts[place] for rank in one.ranks), default=0),
                        "num_most": max((rank.counts[place] for rank in one.ranks), default=0),
                    }
                    for place, name in enumerate(one.operations)
                ],
            }
            for one in status.communicators
        ],
    }
