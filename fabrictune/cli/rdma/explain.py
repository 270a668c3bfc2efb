"""`fabrictune rdma timers explain`: error 12 in NCCL's logs, and the settings behind it."""

import math
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fabrictune.cli.framework.findings import exit_code, findings_json, print_findings
from fabrictune.cli.framework.options import fail_on_option, json_option, read_duration
from fabrictune.cli.framework.output import print_json, print_lines
from fabrictune.cli.rdma.predict import as_values, profile_option, shown
from fabrictune.foundation.units import PS_PER_NS

if TYPE_CHECKING:
    from fabrictune.rdma_bench.timers.nccl_log_report import Explanation


@click.command()
@click.argument("logs", metavar="LOG...", nargs=-1, required=True, type=click.Path(path_type=Path))
@profile_option
@click.option(
    "--flap", "flap_ps", callback=read_duration, metavar="DURATION", help="Duration of a link flap to survive."
)
@click.option(
    "--watchdog",
    "watchdog_ps",
    callback=read_duration,
    metavar="DURATION",
    help="Collective timeout of the framework (torch process groups: 10 min).",
)
@fail_on_option
@json_option
def explain(
    logs: tuple[Path, ...], profile: str, flap_ps: int | None, watchdog_ps: int | None, fail_on: str, as_json: bool
) -> int:
    """Say whose completions failed and towards whom, and which timer settings cannot work, from NCCL's logs.

    Give the logs of all hosts together, with NCCL_DEBUG=INFO; with NCCL_DEBUG_SUBSYS=INIT,NET,ENV they tell devices,
    GIDs and hosts of both ends. NCCL_DEBUG=WARN tells the errors alone.

    \b
    Example:
      fabrictune rdma timers explain nccl.*.log
      fabrictune rdma timers explain nccl.log --flap 30s --watchdog 10min --profile my-nic.json
    """
    from fabrictune.collectives.nccl.log import read_nccl_log
    from fabrictune.rdma_bench.timers.nccl_log_report import Requirements, explain_log
    from fabrictune.rdma_bench.timers.profile_files import find_profile

    wanted = Requirements(
        survive_ns=0.0 if flap_ps is None else flap_ps / PS_PER_NS,
        watchdog_ns=math.inf if watchdog_ps is None else watchdog_ps / PS_PER_NS,
    )
    explanation = explain_log(read_nccl_log(logs), find_profile(profile, where="--profile"), wanted)
    findings = explanation.findings
    if as_json:
        prediction = as_values(explanation.prediction)
        print_json({"nccl": explanation.version, "settings": prediction, "findings": findings_json(findings)})
        return exit_code(findings, fail_on)
    print_lines([_summary(explanation)])
    print_findings(findings)
    return exit_code(findings, fail_on)


def _summary(explanation: "Explanation") -> str:
    prediction, spec = explanation.prediction, explanation.prediction.spec
    return (
        f"NCCL {explanation.version}, timeout {spec.timeout_exponent}, {spec.retries} retries; "
        f"{prediction.profile.name}: retry-exceeded error after {shown(prediction.gives_up_ns)}, flaps of up to "
        f"{shown(prediction.longest_flap_ns)} survived; {len(explanation.errors)} completions with an error"
    )
