"""`fabrictune rdma bw|lat|matrix`: how fast writes between RDMA ports go, and how long one takes."""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from fabrictune.cli.framework.options import INTERRUPTED, Command, fail_on_option, json_option, quiet_option
from fabrictune.cli.framework.output import print_table
from fabrictune.cli.framework.progress import progress_bar
from fabrictune.cli.framework.records import output_folder, print_record, with_command
from fabrictune.cli.framework.rules import site_rules
from fabrictune.cli.rdma.pair import opened_pair, pair_options, token_option
from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.run_tables.rows import to_rows
from fabrictune.foundation.units import PS_PER_NS, format_duration, format_rate, parse_bytes

if TYPE_CHECKING:
    from fabrictune.rdma_bench.measurement.transfers import MeasuredTransfers, TransferPlan


LATENCY_COLUMNS = ("median_ns", "p99_ns")


def _read_sizes(context: click.Context, option: click.Parameter, texts: tuple[str, ...]) -> tuple[int, ...]:
    """Return bytes; raises UnitError."""
    return tuple(parse_bytes(text, where=f"{context.command_path}: {option.opts[0]}") for text in texts)


_PLAN_OPTIONS = (
    click.option(
        "--size",
        "sizes_bytes",
        callback=_read_sizes,
        multiple=True,
        default=("64 KiB",),
        show_default=True,
        metavar="SIZE",
        help="Message size of a write; repeatable.",
    ),
    click.option(
        "--qps",
        "queue_pairs",
        type=click.IntRange(1, 128),
        multiple=True,
        default=(1,),
        show_default=True,
        help="Number of concurrent queue pairs; repeatable.",
    ),
    click.option(
        "--backend",
        type=click.Choice(["pyverbs", "perftest"]),
        default="pyverbs",
        show_default=True,
        help="Execution backend: a Python loop, or ib_write_bw and ib_write_lat.",
    ),
    click.option(
        "--seconds",
        "duration_s",
        type=click.FloatRange(0.01, 600),
        default=1.0,
        show_default=True,
        help="Duration of one case in seconds.",
    ),
    click.option("--iterations", "num_iterations", type=click.IntRange(5, 50_000), default=1000, show_default=True),
)


def plan_options(command: Command) -> Command:
    """Give a command the options that say what is measured."""
    for option in reversed(_PLAN_OPTIONS):
        command = option(command)
    return command


def out_option(name: str) -> Callable[[Command], Command]:
    """Return the option for the record's folder."""
    return click.option(
        "--out", type=click.Path(path_type=Path), metavar="DIR", default=Path("runs") / name, show_default=True
    )


@click.command()
@plan_options
@click.option(
    "--directions",
    type=click.IntRange(1, 2),
    multiple=True,
    default=(1,),
    show_default=True,
    help="Number of directions; 2 adds the bandwidths of both ends.",
)
@out_option("rdma-bw")
@pair_options
@fail_on_option
@quiet_option
@json_option
@click.pass_context
def bw(context: click.Context, /, **settings: Any) -> int:
    """Measure the bandwidth between two RDMA ports, over sizes, queue pairs and directions.

    A loop in Python is slower than a fast adapter with small writes; perftest is not.

    \b
    Example:
      fabrictune rdma bw --device mlx5_0 --peer-device mlx5_1 --backend perftest --qps 1 --qps 4 --size "1 MiB"
      fabrictune rdma bw --soft-roce --directions 1 --directions 2
    """
    return _measure_pair(context, "bandwidth", settings)


@click.command()
@plan_options
@out_option("rdma-lat")
@pair_options
@fail_on_option
@quiet_option
@json_option
@click.pass_context
def lat(context: click.Context, /, **settings: Any) -> int:
    """Measure how long a write between two RDMA ports takes: a round trip with pyverbs, half of one with perftest.

    \b
    Example:
      fabrictune rdma lat --device mlx5_0 --backend perftest --size "8 B"
      fabrictune rdma lat --sender a:18700 --receiver b:18700 --token-file token
    """
    return _measure_pair(context, "latency", settings)


@click.command()
@click.argument("workers", metavar="HOST:PORT...", nargs=-1, required=True)
@click.option("--what", type=click.Choice(["bandwidth", "latency"]), default="bandwidth", show_default=True)
@plan_options
@click.option(
    "--device", default="", metavar="NAME", help="Device on every host.  [default: the first with an active port]"
)
@token_option
@out_option("rdma-matrix")
@fail_on_option
@quiet_option
@json_option
@click.pass_context
def matrix(
    context: click.Context,
    /,
    workers: tuple[str, ...],
    what: Literal["bandwidth", "latency"],
    device: str,
    token_file: Path | None,
    **settings: Any,
) -> int:
    """Measure from each host to each other one, one pair after another; `report build` draws the heat map.

    Each HOST:PORT is a worker: see `rdma serve`. HOST:PORT/DEVICE names its device too.

    \b
    Example:
      fabrictune rdma matrix a:18700 b:18700 c:18700/mlx5_2 --token-file token --backend perftest
      fabrictune report build runs/rdma-matrix
    """
    from fabrictune.rdma_bench.measurement.pair import PortChoice
    from fabrictune.rdma_bench.measurement.transfers import measure_matrix
    from fabrictune.rdma_bench.measurement.workers import remote_worker
    from fabrictune.rdma_bench.verbs.tokens import read_token

    if len(workers) < 2 or token_file is None:
        allowed = "two workers or more, and their --token-file"
        raise InputError(Mistake(where=context.command_path, found=f"{len(workers)} workers", allowed=allowed))
    started, output, plan = time.perf_counter(), _Output(context, settings), _plan(what, settings)
    token = read_token(token_file)
    with output.progress() as progress, ExitStack() as stack:
        ends = []
        for worker in workers:
            place, _, own = worker.partition("/")
            ends.append((stack.enter_context(remote_worker(place, token)), PortChoice(device=own or device)))
        measured = measure_matrix(ends, plan, progress)
    num_planned = len(workers) * (len(workers) - 1) * plan.num_cases
    return output.finish(measured, plan, "rdma matrix", num_planned, ", ".join(workers), started)


def _measure_pair(context: click.Context, what: Literal["bandwidth", "latency"], settings: dict[str, Any]) -> int:
    from fabrictune.rdma_bench.measurement.transfers import measure_transfers

    started, output, plan = time.perf_counter(), _Output(context, settings), _plan(what, settings)
    with output.progress() as progress, opened_pair(context, settings) as (pair, place):
        measured = measure_transfers(pair, plan, progress)
    return output.finish(measured, plan, f"rdma {context.info_name}", plan.num_cases, place, started)


def _plan(what: Literal["bandwidth", "latency"], settings: dict[str, Any]) -> "TransferPlan":
    from fabrictune.rdma_bench.measurement.transfers import TransferPlan

    names = ("sizes_bytes", "queue_pairs", "backend", "duration_s", "num_iterations")
    return TransferPlan(
        what=what, directions=settings.pop("directions", (1,)), **{name: settings.pop(name) for name in names}
    )


class _Output:
    """Where the results of one command go."""

    def __init__(self, context: click.Context, settings: dict[str, Any]) -> None:
        self.out: Path = output_folder(settings.pop("out"))
        self.fail_on: str = settings.pop("fail_on")
        self.is_quiet: bool = settings.pop("quiet")
        self.as_json: bool = settings.pop("as_json")

    def progress(self) -> Any:
        """Return the bar of this command."""
        return progress_bar("measuring", is_quiet=self.is_quiet or self.as_json)

    def finish(
        self,
        measured: "MeasuredTransfers",
        plan: "TransferPlan",
        kind: str,
        num_planned: int,
        place: str,
        started: float,
    ) -> int:
        """Write the record, print what was measured, and return the exit code."""
        from fabrictune.rdma_bench.measurement.stop_reason import CTRL_C
        from fabrictune.rdma_bench.measurement.transfer_record import TABLE, make_transfer_record

        record = with_command(
            make_transfer_record(
                measured, plan, kind=kind, num_planned=num_planned, place=place, started=started, rules=site_rules()
            )
        )
        directory, rows = record.write(self.out), to_rows(record.tables[TABLE])
        code = print_record(
            record,
            directory,
            lambda: {"is_partial": record.run["is_partial"], "transfers": rows},
            lambda: _print(rows, plan.what),
            as_json=self.as_json,
            quiet=self.is_quiet,
            fail_on=self.fail_on,
        )
        return INTERRUPTED if measured.stopped == CTRL_C else code


def _print(rows: Sequence[dict[str, Any]], what: str) -> None:
    measured = ("bandwidth",) if what == "bandwidth" else ("median", "p99")
    cells = [
        (
            f"{row['sender']} to {row['receiver']}",
            str(row["queue_pairs"]),
            str(row["size_bytes"]),
            str(row["directions"]),
            *(
                [format_rate(row["bandwidth_bps"])]
                if what == "bandwidth"
                else [format_duration(row[name] * PS_PER_NS) for name in LATENCY_COLUMNS]
            ),
        )
        for row in rows
    ]
    print_table(("from, to", "queue pairs", "size (B)", "directions", *measured), cells)
