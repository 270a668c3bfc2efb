"""`fabrictune rdma timers explain`: error 12 in NCCL's logs, and the settings behind it."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fabrictune.cli.framework.findings import conclude, judged_json, print_findings
from fabrictune.cli.framework.options import fail_on_option, json_option, read_duration
from fabrictune.cli.framework.output import print_json, print_lines
from fabrictune.cli.rdma.predict import as_values, nccl_option, profile_option, shown
from fabrictune.foundation.units import PS_PER_NS

if TYPE_CHECKING:
    from fabrictune.rdma_bench.timers.nccl_log_report import Explanation


@click.command()
@click.argument("logs", metavar="LOG...", nargs=-1, required=True, type=click.Path(path_type=Path))
@profile_option
@nccl_option
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
    logs: tuple[Path, ...],
    profile: str | None,
    nccl: str | None,
    flap_ps: int | None,
    watchdog_ps: int | None,
    fail_on: str,
    as_json: bool,
) -> int:
    """Say whose completions failed and towards whom, and which timer settings cannot work, from NCCL's logs.

    Give the logs of all hosts together, with NCCL_DEBUG=INFO; with NCCL_DEBUG_SUBSYS=INIT,NET,ENV they tell devices,
    GIDs and hosts of both ends. NCCL_DEBUG=WARN tells the errors alone.

    What a log leaves open (the version of NCCL, the adapter's model) is printed as assumed. Networks that retransmit by
    themselves (sockets, libfabric on EFA or Slingshot) get no prediction.

    \b
    Example:
      fabrictune rdma timers explain nccl.*.log
      fabrictune rdma timers explain warnings.log --nccl 2.21.5
      fabrictune rdma timers explain nccl.log --flap 30s --watchdog 10min --profile my-nic.json
    """
    from fabrictune.collectives.nccl.log import read_nccl_log
    from fabrictune.rdma_bench.timers.nccl_log_report import Requirements, explain_log
    from fabrictune.rdma_bench.timers.profile_files import find_profile

    wanted = Requirements(
        survive_ns=0.0 if flap_ps is None else flap_ps / PS_PER_NS,
        watchdog_ns=math.inf if watchdog_ps is None else watchdog_ps / PS_PER_NS,
    )
    known = find_profile(profile, where="--profile") if profile else None
    explanation = explain_log(read_nccl_log(logs), known, wanted, nccl=nccl or "")
    if as_json:
        print_json({**_values(explanation), **judged_json(explanation)})
        return conclude(fail_on, explanation)
    print_lines([_summary(explanation), *(f"assumed: {text}" for text in explanation.assumptions)])
    print_findings(explanation)
    return conclude(fail_on, explanation)


def _values(explanation: "Explanation") -> dict[str, Any]:
    """Return what is known of the settings as JSON values; `settings` is null unless they are known."""
    basis = {"confidence": "assumed"} if explanation.profile_is_assumed else {}
    predictions = [{**as_values(one), **basis} for one in explanation.predictions]
    return {
        "nccl": explanation.version or None,
        "networks": list(explanation.networks),
        "settings": predictions[0] if len(predictions) == 1 else None,
        "possible_settings": predictions,
        "assumptions": list(explanation.assumptions),
    }


def _summary(explanation: "Explanation") -> str:
    version = f"NCCL {explanation.version or 'of a version not logged'}"
    errors = f"completions with an error: {len(explanation.errors)}"
    settings = "; ".join(
        f"timeout {one.spec.timeout_exponent}, {one.spec.retries} retries: retry-exceeded error after "
        f"{shown(one.gives_up_ns)}, flaps of up to {shown(one.longest_flap_ns)} survived"
        for one in explanation.predictions
    )
    profile = f" by {explanation.predictions[0].profile.name}" if explanation.predictions else ""
    return "; ".join(part for part in (version, settings and f"{settings}{profile}", errors) if part)
