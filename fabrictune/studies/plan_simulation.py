"""A plan confirmed by the engine: the time of each job as it is and with the plan, predicted and simulated.

Predicted is the time at max-min fair rates, which are found anew whenever a transfer begins or ends: no packets, no
queues and no law. Rates of all queue pairs at once, by which the planner chooses, know no time: in a mixture one job
ends before another, and a collective's steps follow one another. Simulated is the scenario with its own engine and law,
packet by packet. The gain is the time as it is over the time with the plan.

Source: Bertsekas and Gallager, Data Networks, section 6.5.2 (max-min fairness); decision 0077 (rates over time).
"""

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabrictune.foundation.errors import FabrictuneWarning
from fabrictune.foundation.metrics.measures import measure_parts
from fabrictune.foundation.metrics.transfers import makespan_ps
from fabrictune.foundation.progress import Progress, stage
from fabrictune.foundation.records import Columns
from fabrictune.foundation.settings.binding import Chosen
from fabrictune.netsim.config.fluid import FluidConfig
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.scenario.laws import NO_LAW
from fabrictune.scenario.schema import Scenario
from fabrictune.studies.simulation import simulate

ALL = "all"  # row of the whole traffic

# At shares an acknowledged queue pair takes of every port on the way back what it takes at its full rate, which on a
# port that many share is several times what it does take. Acknowledgements cost the time as it is and the time with the
# plan alike, about 2 %, so that the gain is nearer without them.
FEW_ACKNOWLEDGEMENTS = 64  # packets for each

Times = Mapping[str, float]  # picoseconds by job; nan where one never ends


def predicted_times(scenario: Scenario) -> Times:
    """Return the time of each part of the traffic, and of all, at max-min fair rates; raises InputError."""
    config = scenario.wire_config()
    at_shares = FluidConfig(
        ack_every_packets=FEW_ACKNOWLEDGEMENTS,
        mtu_bytes=config.mtu_bytes,
        time_limit_ns=config.time_limit_ns,
        nvlink_rate_bps=config.nvlink_rate_bps,
    )
    return _times(_of_traffic(replace(scenario, law=NO_LAW, engine=Chosen(name="fluid", spec=at_shares))))


def simulated_times(scenario: Scenario, *, progress: Progress | None = None) -> Times:
    """Return the same times packet by packet, under the scenario's engine and law; raises InputError, LawError."""
    config = scenario.packet_config()
    if config.skip == "fluid":
        scenario = replace(scenario, engine=replace(scenario.engine, spec=replace(config, skip=PacketConfig().skip)))
    return _times(replace(scenario, expect=()), progress=progress)


def confirm(scenario: Scenario, planned: Scenario, *, progress: Progress | None = None) -> Columns:
    """Return the table `plan_gains`, a row for each part of the traffic and one for all; raises InputError, LawError.

    All predictions are made before anything is simulated.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FabrictuneWarning)  # the planner has said them
        predicted = [predicted_times(one) for one in (scenario, planned)]
        simulated = [
            simulated_times(one, progress=stage(progress, turn, 2)) for turn, one in enumerate((scenario, planned))
        ]
    columns: dict[str, NDArray[Any]] = {"job": np.array(list(predicted[0]), object)}
    for how, (before, after) in (("predicted", predicted), ("simulated", simulated)):
        before_ps, after_ps = np.array(list(before.values())), np.array(list(after.values()))
        columns |= {f"{how}_before_ps": before_ps, f"{how}_after_ps": after_ps, f"{how}_gain": before_ps / after_ps}
    return columns


def _of_traffic(scenario: Scenario) -> Scenario:
    """Return the scenario without what takes no part in rates: faults, probes, captures and bounds."""
    return replace(scenario, faults=(), convergence_delay_ns=None, probe=None, capture=None, expect=())


def _times(scenario: Scenario, *, progress: Progress | None = None) -> Times:
    record = simulate(scenario, with_collisions=False, progress=progress)
    if record.run["outcome"] == "interrupted":
        raise KeyboardInterrupt  # a time until then is no job's
    parts = {part: metrics["makespan"] for part, metrics in measure_parts(record).items()}
    times = {**parts, ALL: makespan_ps(record.tables["transfers"])}
    return {name: time_ps if np.isfinite(time_ps) else float("nan") for name, time_ps in times.items()}
