"""`fabrictune coll model`: what a collective should take on a fabric."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fabrictune.cli.coll.model_explain import Asked, explain_hosts, explain_job, explain_options
from fabrictune.cli.coll.options import bench_spec, gigabytes_per_s, size_options
from fabrictune.cli.framework.options import is_code_trusted, json_option, quiet_option, scenario_argument
from fabrictune.cli.framework.output import print_json, print_lines, print_table
from fabrictune.cli.framework.progress import progress_bar
from fabrictune.cli.framework.records import output_folder, print_answer, record_json, with_command
from fabrictune.foundation.run_tables.rows import to_rows

if TYPE_CHECKING:
    from fabrictune.hardware.profile import HardwareProfile

NO_INTERVAL = "no time has an interval: each follows from the scenario's rates, delays and hash seed, taken as exact"


@click.command()
@scenario_argument
@click.argument("operations", metavar="OPERATION...", nargs=-1)
@size_options
@explain_options
@click.option("--engine", "with_engine", is_flag=True, help="Simulate each size in the packet engine as well.")
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", default=Path("runs/model"), show_default=True)
@quiet_option
@json_option
@click.pass_context
def model(
    context: click.Context,
    /,
    scenario: Path,
    operations: tuple[str, ...],
    with_engine: bool,
    out: Path,
    quiet: bool,
    as_json: bool,
    explain: bool,
    num_hosts: int | None,
    hardware: "HardwareProfile",
    version: str,
    environment: tuple[str, ...],
    tuner: Path | None,
    graphs: Path | None,
    **settings: Any,
) -> int:
    """Say what an OPERATION should take on the job and fabric of SCENARIO: at best, and where flows collide.

    An OPERATION is all_reduce, all_gather, reduce_scatter, broadcast, all_to_all or send_recv, or `all` of them.
    SCENARIO is one whose workload is `collective` or `all_reduce`. The bound follows every message: 512 ranks on eight
    channels take half a minute a size.

    With --explain it says what NCCL chooses for each size, and how long that takes, with an interval. SCENARIO gives
    ranks and NICs then, and --hardware everything else; with --hosts the profile is enough.

    \b
    Example:
      fabrictune coll model all_reduce --hosts 2 --hardware h100 -e "1 GiB"
      fabrictune coll model scenarios/allreduce.yaml all_reduce -b "1 MiB" -e "64 MiB"
      fabrictune coll model my.yaml all_reduce all_to_all --engine --json
    """
    from fabrictune.collectives.measurement.spec import BENCHED
    from fabrictune.scenario.files import load_scenario
    from fabrictune.validate.collective_model import CollectiveModel
    from fabrictune.validate.model_record import TIMES, model_scenario

    if num_hosts is not None:
        operations = (str(scenario), *operations)
    if not operations:
        raise click.UsageError("Missing argument 'OPERATION...'.")
    spec = bench_spec(context, operations, settings)
    asked = Asked(version=version, environment=environment, tuner=tuner, graphs=graphs, as_json=as_json)
    if num_hosts is not None:
        return explain_hosts(spec, hardware, num_hosts, asked)
    if not explain and (environment or tuner or graphs):
        raise click.UsageError("--env, --tuner and --graphs are for --explain")
    checked = load_scenario(scenario, trust_code=is_code_trusted())
    if explain:
        job = CollectiveModel(checked, BENCHED[spec.names[0]])
        return explain_job(spec, hardware, job, asked)
    place = output_folder(out, checked)
    with progress_bar("modelling", is_quiet=quiet or as_json) as progress:
        record = model_scenario(checked, spec.names, spec.sizes(), with_engine=with_engine, progress=progress)
    directory = with_command(record).write(place)
    rows = to_rows(record.tables["model"])
    if as_json:
        print_json({**record_json(record, directory), "model": rows})
        return 0
    if not quiet:
        times = [name for name in TIMES if any(row[f"{name}_ps"] >= 0 for row in rows)]
        print_lines([checked.headline, f"{rows[0]['num_ranks']} ranks a group; times, and busbw in GB/s", ""])
        headings = ("operation", "size (B)", *(word for name in times for word in (name, "busbw")))
        print_table(headings, [_cells(row, times) for row in rows])
        print_lines(["", *(f"{name}: {TIMES[name]}" for name in times), NO_INTERVAL])
    print_answer(record, directory, quiet=quiet)
    return 0


def _cells(row: dict[str, Any], times: list[str]) -> tuple[str, ...]:
    from fabrictune.foundation.units import format_duration

    cells = [row["operation"], str(row["size_bytes"])]
    for name in times:
        time_ps, busbw_bps = row[f"{name}_ps"], row[f"{name}_busbw_bps"]
        cells += [format_duration(time_ps), gigabytes_per_s(busbw_bps)] if time_ps > 0 else ["-", "-"]
    return tuple(cells)
