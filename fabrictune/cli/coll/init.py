"""`fabrictune coll init`: how the ranks of a job find one another, in a storm and for real."""

import os
import statistics
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fabrictune.cli.framework.groups import CommandGroup
from fabrictune.cli.framework.options import fail_on_option, json_option, quiet_option, time_limit_option
from fabrictune.cli.framework.output import print_json, print_lines, print_table
from fabrictune.cli.framework.progress import progress_bar, say_on_terminal
from fabrictune.cli.framework.records import output_folder, print_answer, print_record, record_json, with_command
from fabrictune.foundation.errors import InputError
from fabrictune.foundation.run_tables.rows import tables_to_rows, to_rows
from fabrictune.foundation.units import NS_PER_S, PS_PER_NS

if TYPE_CHECKING:
    from fabrictune.collectives.startup.addresses import StoreAddress
    from fabrictune.collectives.startup.process_groups import Method
    from fabrictune.collectives.startup.storm.patterns import Pattern
    from fabrictune.foundation.records import RunRecord


init = CommandGroup(
    name="init",
    help="""Measure how ranks find one another, and try it here.

    \b
    Example:
      fabrictune coll init storm --ranks 256,512,1024
      fabrictune coll init check --tp 2 --pp 2 --dp 4
    """,
)


def _read_sizes(context: click.Context, option: click.Parameter, text: str) -> tuple[int, ...]:
    """Return numbers of ranks, in rising order, each once."""
    try:
        return tuple(sorted({int(word) for word in text.split(",")}))
    except ValueError:
        raise click.BadParameter(f"{text!r} is no list of whole numbers", context, option) from None


@init.command()
@click.option(
    "--ranks",
    callback=_read_sizes,
    metavar="N,N,...",
    default="128,256,512,1024",
    show_default=True,
    help="Job sizes in ranks.",
)
@click.option("--tp", type=click.IntRange(min=1), default=8, show_default=True, help="Tensor-parallel degree.")
@click.option("--pp", type=click.IntRange(min=1), default=8, show_default=True, help="Pipeline-parallel degree.")
@click.option("--pattern", "names", metavar="NAME", multiple=True, help="Start-up pattern to measure; repeatable.")
@click.option(
    "--extrapolate", "extrapolated_ranks", type=click.IntRange(min=2), default=12288, show_default=True, metavar="N"
)
@time_limit_option(1800.0, "Time limit of one storm in seconds.")
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", default=Path("runs/storm"), show_default=True)
@fail_on_option
@quiet_option
@json_option
def storm(
    ranks: tuple[int, ...],
    tp: int,
    pp: int,
    names: tuple[str, ...],
    extrapolated_ranks: int,
    timeout_s: float,
    out: Path,
    fail_on: str,
    quiet: bool,
    as_json: bool,
) -> int:
    """Let emulated ranks start at once against real store servers on this machine, in every pattern.

    A pattern is an order of asking on a store: torch's earlier and present ones, and groups made in order by their
    members only. Counts operations, and measures wall time and the server's processor time. 1,024 ranks take about a
    minute and a half in all patterns, 2,048 five. Needs torch; for Redis, redis-server.

    \b
    Example:
      fabrictune coll init storm --ranks 256,512,1024,2048 --out runs/storm
      fabrictune coll init storm --ranks 2048,4096 --pattern tcp-ordered --pattern redis-ordered --json
    """
    from fabrictune.collectives.startup.storm.experiment import StormSpec, run_storms
    from fabrictune.collectives.startup.storm.record import make_storm_record

    started, place = time.perf_counter(), output_folder(out)
    try:
        spec = StormSpec(num_ranks=ranks, tp=tp, pp=pp, patterns=_patterns(names), timeout_s=timeout_s)
    except InputError as error:
        raise InputError(
            *(replace(one, where=one.where.replace("num_ranks", "--ranks")) for one in error.mistakes)
        ) from None
    with progress_bar("storms", is_quiet=quiet or as_json) as progress:
        results = run_storms(spec, progress)
    record = make_storm_record(spec, results, extrapolated_ranks=extrapolated_ranks, started=started)
    directory = with_command(record).write(place)

    def values() -> dict[str, Any]:
        return {"configuration": record.run["configuration"], **tables_to_rows(record.tables)}

    return print_record(
        record, directory, values, lambda: _print_storms(record), as_json=as_json, quiet=quiet, fail_on=fail_on
    )


@init.command()
@click.option("--tp", type=click.IntRange(min=1), default=2, show_default=True, help="Tensor-parallel degree.")
@click.option("--pp", type=click.IntRange(min=1), default=2, show_default=True, help="Pipeline-parallel degree.")
@click.option("--dp", type=click.IntRange(min=1), default=4, show_default=True, help="Data-parallel degree.")
@click.option("--cp", type=click.IntRange(min=1), default=1, show_default=True, help="Context-parallel degree.")
@click.option("--ep", type=click.IntRange(min=1), default=1, show_default=True, help="Expert-parallel degree.")
@click.option(
    "--store",
    "store_text",
    metavar="ADDRESS",
    help="tcp://, redis:// or rediss://host:port.  [default: a local store]",
)
@click.option("--ca-file", metavar="FILE", help="CA certificates for a rediss:// store.")
@click.option(
    "--method",
    type=click.Choice(["ordered", "global-barriers"]),
    default="ordered",
    show_default=True,
    help="Start-up method.",
)
@time_limit_option(60.0, "Time limit in seconds.")
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", default=Path("runs/check"), show_default=True)
@quiet_option
@json_option
def check(
    tp: int,
    pp: int,
    dp: int,
    cp: int,
    ep: int,
    store_text: str | None,
    ca_file: str | None,
    method: "Method",
    timeout_s: float,
    out: Path,
    quiet: bool,
    as_json: bool,
) -> int:
    """Start a process for each rank of a layout on this machine, make all its groups, and use each once.

    They meet in the store you name, so this also says whether that one can be used. Its password is read from the
    variable FABRICTUNE_STORE_PASSWORD. Needs torch.

    \b
    Example:
      fabrictune coll init check --tp 2 --pp 2 --dp 4
      FABRICTUNE_STORE_PASSWORD=... fabrictune coll init check --store redis://node1:6379
    """
    from fabrictune.foundation.layout import ParallelLayout
    from fabrictune.trainer_probe.local_trials import try_startup

    started, layout = time.perf_counter(), ParallelLayout(tp=tp, cp=cp, dp=dp, pp=pp, ep=ep)
    place, store = output_folder(out), _store(store_text, ca_file) if store_text else None
    say_on_terminal(f"starting {layout.world_size} processes ...", is_quiet=quiet or as_json)
    trial = try_startup(layout, store=store, method=method, timeout_s=timeout_s)
    slowest_s, median_s = float(trial.elapsed_s_R.max()), statistics.median(trial.elapsed_s_R.tolist())
    where = str(store) if store else "a TCPStore served here"
    record = trial.record(layout, store=where, method=method, started=started)
    directory = record.write(place)
    if as_json:
        times_s = {"slowest_s": slowest_s, "median_s": median_s}
        head = {**record_json(record, directory), "store": where, "method": method}
        print_json({**head, "ranks": trial.num_ranks, "groups": trial.num_groups, **times_s})
        return 0
    slowest, median = (_duration(time_s * NS_PER_S) for time_s in (slowest_s, median_s))
    print_lines(
        [
            f"{trial.num_ranks} ranks made {trial.num_groups} groups over {where} ({method}), "
            f"the slowest rank in {slowest}, the median in {median}",
        ]
    )
    print_answer(record, directory, quiet=quiet)
    return 0


def _store(text: str, ca_file: str | None) -> "StoreAddress":
    """Return a store with what opens it; raises InputError."""
    from fabrictune.collectives.startup.addresses import PASSWORD_VARIABLE, StoreAddress

    address = StoreAddress.parse(text, where="--store")
    return replace(address, password=os.environ.get(PASSWORD_VARIABLE) or None, ca_file=ca_file)


def _patterns(names: tuple[str, ...]) -> "tuple[Pattern, ...]":
    """Return the patterns of these names, or all; raises InputError."""
    from fabrictune.collectives.startup.storm.patterns import PATTERNS
    from fabrictune.foundation.errors import require_one_of

    allowed = [pattern.name for pattern in PATTERNS]
    for name in names:
        require_one_of(name, allowed, where="--pattern", what="pattern", error=InputError)
    return tuple(pattern for pattern in PATTERNS if not names or pattern.name in names)


def _print_storms(record: "RunRecord") -> None:
    configuration = record.run["configuration"]
    print_table(("pattern", "is"), list(configuration["patterns"].items()))
    print_lines([""])
    print_table(
        ("pattern", "ranks", "requests", "closed form", "wall", "server CPU"),
        [
            (
                row["pattern"],
                f"{row['ranks']:,}",
                f"{row['requests']:,}",
                f"{row['requests_expected']:,}" + ("" if row["is_exact"] else " or more"),
                _duration(row["wall_ns"]),
                _duration(row["server_cpu_ns"]),
            )
            for row in to_rows(record.tables["storms"])
        ],
    )
    if "gains" in record.tables:
        _print_gains(to_rows(record.tables["gains"]))
    if "growth" in record.tables:
        _print_growth(to_rows(record.tables["growth"]), configuration["extrapolated_ranks"])
        print_lines(["assuming that:", *(f"  {line}" for line in configuration["assumptions"])])


def _print_gains(rows: list[dict[str, Any]]) -> None:
    print_lines(["", "times less than legacy:"])
    print_table(
        ("pattern", "ranks", "requests", "wall", "server CPU"),
        [
            (
                row["pattern"],
                f"{row['ranks']:,}",
                *(f"{row[f'{cost}_times']:.1f}" for cost in ("requests", "wall_ns", "server_cpu_ns")),
            )
            for row in rows
        ],
    )


def _print_growth(rows: list[dict[str, Any]], num_ranks: int) -> None:
    from fabrictune.collectives.startup.storm.growth import MAX_SPREAD

    print_lines(["", f"growth, and what it makes of {num_ranks:,} ranks:"])
    print_table(
        ("pattern", "cost", "exponent", f"at {num_ranks:,}", "95 % interval", "of it quadratic", "max fit error"),
        [
            (
                row["pattern"],
                row["cost"].removesuffix("_ns").replace("_", " "),
                f"{row['exponent']:.2f}",
                _cost(row, row["extrapolated"]) if row["extrapolated"] >= 0 else "not extrapolated",
                f"{_cost(row, row['extrapolated_low'])} to {_cost(row, row['extrapolated_high'])}",
                f"{row['quadratic_fraction']:.0%}" if row["quadratic_fraction"] >= 0 else "",
                f"{row['worst_error_fraction']:.0%}",
            )
            for row in rows
        ],
    )
    if any(row["extrapolated"] < 0 for row in rows):
        print_lines(
            [
                f"not extrapolated: the sizes measured leave an interval whose upper end is more than {MAX_SPREAD:g} "
                "times its lower; measure larger sizes, or on a quieter machine"
            ]
        )


def _cost(row: dict[str, Any], value: float) -> str:
    return f"{value:,.0f}" if row["cost"] == "requests" else _duration(value)


def _duration(nanoseconds: float) -> str:
    from fabrictune.foundation.units import format_duration

    return format_duration(nanoseconds * PS_PER_NS)
