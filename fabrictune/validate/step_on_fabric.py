"""A predicted step whose communication is simulated on the fabric of a scenario.

The job's requests, with the work that the profile expects between them, are the scenario's traffic in place of its own;
its engine, placement and law stay. What a simulated step does not have is added from the prediction: work that
collectives take from the GPU, synchronisation, slow hosts and the fixed part. The optimizer's requests are left out.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fabrictune.foundation.documents import load_yaml
from fabrictune.foundation.errors import Mistake, ScenarioError
from fabrictune.foundation.job_traces import JobTrace
from fabrictune.foundation.layout import RANK_AXES
from fabrictune.foundation.metrics.catalog import METRICS
from fabrictune.foundation.progress import Progress
from fabrictune.foundation.units import PS_PER_S
from fabrictune.scenario.files import parse_scenario
from fabrictune.scenario.schema import Scenario
from fabrictune.studies.simulation import simulate
from fabrictune.trainer_probe.planning.plan import expect_plan
from fabrictune.trainer_probe.prediction.predictor import Prediction
from fabrictune.trainer_probe.prediction.prices import SHARED_GPU, SYNCHRONISATION

MAX_SCENARIO_BYTES = 2**20
_TRACE_FILE = "job_trace.parquet"
_NOT_SIMULATED = (SHARED_GPU, SYNCHRONISATION, "slow hosts", "fixed")


@dataclass(frozen=True, kw_only=True)
class FabricStep:
    """A step whose communication was simulated."""

    simulated_s: float
    not_simulated_s: float

    @property
    def step_s(self) -> float:
        """The step."""
        return self.simulated_s + self.not_simulated_s


def step_on_fabric(prediction: Prediction, path: Path, *, progress: Progress | None = None) -> FabricStep:
    """Return a predicted step on the fabric of the scenario in a file; raises InputError."""
    kernel = prediction.profile.software.attention or None
    job = expect_plan(prediction.recipe, prediction.profile, attention_kernel=kernel).trace
    with TemporaryDirectory(prefix="fabrictune-") as folder:
        trace = Path(folder) / _TRACE_FILE
        with trace.open("wb") as file:
            job.write(file)
        record = simulate(_with_job(path, trace, job), with_collisions=False, progress=progress)
    causes = prediction.causes()
    return FabricStep(
        simulated_s=METRICS["makespan"].formula(record) / PS_PER_S,
        not_simulated_s=sum(causes[name] for name in _NOT_SIMULATED),
    )


def _with_job(path: Path, trace: Path, job: JobTrace) -> Scenario:
    """Return the scenario in a file with a job as its traffic."""
    tree: Any = load_yaml(path, max_bytes=MAX_SCENARIO_BYTES).tree
    if not isinstance(tree, dict):
        raise ScenarioError(Mistake(where=str(path), found="no scenario", allowed="keys of a scenario"))
    layout = job.layout
    degrees = {axis: getattr(layout, axis) for axis in (*RANK_AXES, "ep") if getattr(layout, axis) > 1} or {"dp": 1}
    traffic = {
        "workload": "comm_trace",
        "file": str(trace),
        "layout": {**degrees, "order": list(layout.order)},
        **_kept(tree.get("traffic")),
    }
    return parse_scenario(json.dumps({**tree, "traffic": traffic}), path)


def _kept(traffic: Any) -> dict[str, Any]:
    """Return what a scenario's traffic says of how a job is placed and expanded."""
    keys = ("placement", "expansion")
    return {key: traffic[key] for key in keys if key in traffic} if isinstance(traffic, dict) else {}
