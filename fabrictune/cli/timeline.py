"""`fabrictune trace timeline`: a run as a timeline that Perfetto opens."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fabrictune.cli.framework.options import json_option, read_duration
from fabrictune.cli.framework.output import print_json, print_lines
from fabrictune.foundation.units import PS_PER_NS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fabrictune.observability.timeline.timeline import Fact

MAX_RANKS = 100_000
_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")


def _read_steps(context: click.Context, option: click.Parameter, text: str | None) -> tuple[int, int] | None:
    """Return the first and last step of `A-B` or `A`."""
    if text is None:
        return None
    ranges = _ranges(text, where=f"{context.command_path}: {option.opts[0]}", allowed="A-B, or one step")
    return ranges[0][0], ranges[-1][1]


def _read_ranks(context: click.Context, option: click.Parameter, text: str | None) -> tuple[int, ...] | None:
    """Return the ranks of `0-7,16`."""
    if text is None:
        return None
    where = f"{context.command_path}: {option.opts[0]}"
    ranges = _ranges(text, where=where, allowed="ranks such as 0-7,16")
    return tuple(rank for first, last in ranges for rank in range(first, last + 1))


def _ranges(text: str, *, where: str, allowed: str) -> list[tuple[int, int]]:
    from fabrictune.foundation.errors import InputError, Mistake

    matches = [_RANGE.fullmatch(part.strip()) for part in text.split(",")]
    ranges = [(int(match[1]), int(match[2] or match[1])) for match in matches if match]
    is_good = len(ranges) == len(matches) and all(first <= last for first, last in ranges)
    if not is_good or sum(last - first for first, last in ranges) > MAX_RANKS:
        raise InputError(Mistake(where=where, found=text, allowed=allowed))
    return ranges


@click.command()
@click.argument("source", metavar="RUN|FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--steps", callback=_read_steps, metavar="A-B", help="Steps that are shown.  [default: all]")
@click.option("--ranks", callback=_read_ranks, metavar="LIST", help="Ranks that are shown: 0-7,16.  [default: all]")
@click.option(
    "--precision",
    "precision_ps",
    callback=read_duration,
    metavar="DURATION",
    help="Error of a host's clock that is good enough.  [default: the shortest transfer between hosts]",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="FILE",
    required=True,
    help="Perfetto trace to write; compressed if its name ends in .gz.",
)
@json_option
def timeline(
    source: tuple[Path, ...],
    steps: tuple[int, int] | None,
    ranks: tuple[int, ...] | None,
    precision_ps: int | None,
    out: Path,
    as_json: bool,
) -> None:
    """Write a run as a timeline for ui.perfetto.dev, with what waits for what.

    RUN is the folder of a training, an operated job or a simulated run; FILE... are files of a measured trace
    (profiles, a comm_trace.parquet). Hosts are processes, ranks threads; an arrow leads from the last to arrive to
    those that waited. Clocks of several hosts are corrected as far as requests bound them; where they are not known
    as well as what is shown, nothing is written.

    \b
    Example:
      fabrictune trace timeline runs/tiny --out tiny.pftrace
      fabrictune trace timeline runs/job --steps 100-102 --ranks 0-15 --out steps.pftrace.gz
    """
    from fabrictune.foundation.output_files import check_output_file
    from fabrictune.observability.timeline.perfetto import write_perfetto
    from fabrictune.observability.timeline.sources import Selection, read_timeline

    check_output_file(out)
    precision_ns = None if precision_ps is None else precision_ps // PS_PER_NS
    drawn = read_timeline(source, Selection(steps=steps, ranks=ranks, precision_ns=precision_ns))
    facts = write_perfetto(drawn, out)
    num_slices, num_arrows = len(drawn.slices), len(drawn.arrows)
    num_tracks, num_processes = len(drawn.tracks), len(drawn.processes)
    if as_json:
        counts = {"num_slices": num_slices, "num_tracks": num_tracks, "num_processes": num_processes}
        told = {name: str(value) for name, value in facts.items()}
        print_json({"timeline": str(out), **counts, "num_arrows": num_arrows, "facts": told})
        return
    print_lines(
        [
            f"{num_slices:,} slices on {num_tracks:,} tracks of {num_processes:,} "
            f"{'process' if num_processes == 1 else 'processes'}, {num_arrows:,} arrows",
            *_notes(facts),
            f"timeline: {out}; open it at ui.perfetto.dev, which reads it in the browser",
        ]
    )


def _notes(facts: "Mapping[str, Fact]") -> list[str]:
    """Return what a reader must know: errors of clocks, and what is not there."""
    known = ("source", "fabrictune", "record", "name", "seed")
    return [f"note: {name}: {value}" for name, value in facts.items() if value and name not in known]
