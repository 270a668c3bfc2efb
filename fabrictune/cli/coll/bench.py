"""`fabrictune coll bench`: measure collectives between real processes."""

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fabrictune.cli.coll.options import bandwidth_cells, bench_spec, operations_argument, size_options
from fabrictune.cli.framework.options import fail_on_option, json_option, quiet_option, time_limit_option
from fabrictune.cli.framework.output import print_lines, print_table
from fabrictune.cli.framework.progress import progress_bar
from fabrictune.cli.framework.records import output_folder, print_record, with_command
from fabrictune.cli.framework.rules import site_rules
from fabrictune.foundation.errors import Mistake, UnavailableError
from fabrictune.foundation.run_tables.rows import to_rows
from fabrictune.foundation.units import PS_PER_NS

if TYPE_CHECKING:
    from fabrictune.foundation.records import RunRecord

SPREAD = ("p10", "median", "p99", "skew")


@click.command()
@operations_argument
@click.option("--ranks", type=click.IntRange(2, 256), default=4, show_default=True, help="Number of local processes.")
@size_options
@click.option(
    "-w", "--warmups", "num_warmups", type=int, default=5, show_default=True, help="Warm-up iterations per size."
)
@click.option(
    "-n",
    "--iterations",
    "num_iterations",
    type=int,
    default=20,
    show_default=True,
    help="Measured iterations per size.",
)
@click.option(
    "--backend",
    type=click.Choice(["gloo", "nccl"]),
    default="gloo",
    show_default=True,
    help="Communication backend; nccl needs torchrun.",
)
@time_limit_option(1800.0, "Time limit of the benchmark in seconds.")
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", default=Path("runs/bench"), show_default=True)
@fail_on_option
@quiet_option
@json_option
@click.pass_context
def bench(
    context: click.Context,
    /,
    operations: tuple[str, ...],
    ranks: int,
    backend: str,
    timeout_s: float,
    out: Path,
    fail_on: str,
    quiet: bool,
    as_json: bool,
    **settings: Any,
) -> int:
    """Measure collectives as nccl-tests does, each checked: how long they take, how they spread, and who is late.

    An OPERATION is all_reduce, all_gather, reduce_scatter, broadcast, all_to_all or send_recv, or `all` of them. Starts
    processes on this machine that talk over gloo on the loopback. Under torchrun or srun it is one rank of many, on any
    hosts, and rank 0 reports. Needs torch.

    \b
    Example:
      fabrictune coll bench all_reduce --ranks 4 -e "64 MiB"
      torchrun --nnodes 2 --nproc-per-node 8 ... -m fabrictune coll bench all --backend nccl -e "1 GiB"
    """
    from fabrictune.collectives.measurement.record import make_bench_record
    from fabrictune.collectives.measurement.torchrun import bench_as_rank
    from fabrictune.collectives.startup.launchers import launched_by
    from fabrictune.foundation.extras import require_extra
    from fabrictune.trainer_probe.local_trials import bench_locally

    require_extra("torch", extra="train", where=context.command_path)
    started, spec, launched = time.perf_counter(), bench_spec(context, operations, settings), launched_by(os.environ)
    is_silent = launched is not None and launched.rank > 0
    place = out if is_silent else output_folder(out)
    with progress_bar("measuring", is_quiet=quiet or as_json or is_silent) as progress:
        if launched is None:
            _refuse_nccl(backend)
            notes = bench_locally(spec, num_ranks=ranks, timeout_s=timeout_s, progress=progress)
        else:
            notes = bench_as_rank(launched, spec, backend=backend, timeout_s=timeout_s, progress=progress)
    if is_silent:
        return 0
    record = make_bench_record(spec, notes, backend=backend, started=started, rules=site_rules())
    directory = with_command(record).write(place)

    def values() -> dict[str, Any]:
        rows = {name: to_rows(record.tables[name]) for name in ("measurements", "ranks")}
        return {"configuration": record.run["configuration"], **rows}

    return print_record(
        record, directory, values, lambda: _print(record), as_json=as_json, quiet=quiet, fail_on=fail_on
    )


def _refuse_nccl(backend: str) -> None:
    if backend == "nccl":
        raise UnavailableError(
            Mistake(
                where="--backend nccl",
                found="processes started here share this machine's processors, and NCCL wants a GPU for each",
                next_step="torchrun --nproc-per-node GPUS -m fabrictune coll bench ... --backend nccl",
            )
        )


def _print(record: "RunRecord") -> None:
    configuration = record.run["configuration"]
    num_ranks, num_hosts = configuration["num_ranks"], configuration["num_hosts"]
    hosts = f"{num_hosts} host{'s' if num_hosts > 1 else ''}"
    print_lines([f"{num_ranks} ranks on {hosts} over {configuration['backend']}", *configuration["conventions"], ""])
    print_table(
        ("operation", "in place", "size (B)", "time", "algbw GB/s", "busbw GB/s", "#wrong", *SPREAD),
        [_cells(row) for row in to_rows(record.tables["measurements"])],
    )
    print_lines(
        ["", "time: nccl-tests', of a rank's whole loop. p10 to p99: of iterations, from the last rank's begin."]
    )
    print_lines(["skew: from the first rank's begin to the last's, on average."])


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    from fabrictune.foundation.units import format_duration

    spread = (format_duration(row[f"{name}_ns"] * PS_PER_NS) for name in SPREAD)
    return (*bandwidth_cells(row), str(row["num_wrong"]), *spread)
