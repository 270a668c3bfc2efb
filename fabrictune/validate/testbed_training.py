"""A training on a testbed, a rank a host: each step with what every port and the ranks' threads did meanwhile.

Once connections are made, each step comes with its plan on their paths (`step_plan.py`).

Shapes: P ports.
"""

import json
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fabrictune.foundation.arrays import FloatArray, IntArray
from fabrictune.foundation.children import ending_with_parent, module_command
from fabrictune.foundation.errors import InputError, Mistake, UnavailableError
from fabrictune.foundation.extras import require_extra
from fabrictune.foundation.processor_waits import waited_s
from fabrictune.foundation.traces import CommTrace
from fabrictune.testbed.connections import read_connections
from fabrictune.testbed.counters import LinkReading
from fabrictune.testbed.paths import kernel_paths
from fabrictune.testbed.port_watch import PortUse, watched_ports
from fabrictune.testbed.testbed import Testbed
from fabrictune.trainer_probe.recipes.schema import Recipe
from fabrictune.validate.step_plan import StepPlan, planned_requests

NS_PER_S = 10**9
WARM_UP_STEPS = 2  # connections are made, pages and caches filled


@dataclass(frozen=True, kw_only=True)
class StepEvent:
    """A step that has ended, by the clock of this machine (CLOCK_MONOTONIC), and what was done meanwhile."""

    step: int  # from 0
    seconds: float
    began_s: float
    waited_s: float  # for processors, of all threads of all ranks
    use: PortUse | None = None  # None without links
    plan: StepPlan | None = None  # None while connections are made


@dataclass(frozen=True, kw_only=True)
class TestbedTraining:
    """What was trained, and what it took."""

    step_s: tuple[float, ...]
    plan: StepPlan
    readings: tuple[LinkReading, LinkReading]  # before and after the whole run

    @property
    def sent_bytes_P(self) -> IntArray:
        """As every port counted them over the whole run."""
        before, after = self.readings
        return after.sent_bytes_P - before.sent_bytes_P

    @property
    def planned_bytes_P(self) -> FloatArray:
        """Return the bytes that each port sends over the whole run, headers and acknowledgements included."""
        return len(self.step_s) * self.plan.wire_bytes_P


def train_on(
    testbed: Testbed,
    recipe: Recipe,
    recipe_file: Path,
    settings: Mapping[str, Any],
    *,
    on_step: Callable[[StepEvent], None] = lambda event: None,
    spans: Path | None = None,
) -> TestbedTraining:
    """Train a recipe with a rank on each host, whose spans go to a folder if one is given.

    Raises InputError for another number of ranks, and UnavailableError.
    """
    require_extra("torch", extra="train", where="trainer")
    num_ranks, num_hosts = recipe.degrees.layout.world_size, len(testbed.hosts)
    if num_ranks != num_hosts:
        step = "change the degrees, or build a testbed of as many hosts"
        found = f"{num_ranks} ranks"
        raise InputError(
            Mistake(
                where=f"{recipe.name}: degrees.layout", found=found, allowed=f"{num_hosts}, a host each", next_step=step
            )
        )
    requests = planned_requests(recipe)
    with tempfile.TemporaryDirectory(prefix="fabrictune-testbed-") as folder, watched_ports(testbed.built) as watch:
        steps, pids, waited = list[float](), list[int](), 0.0
        plan: StepPlan | None = None
        for event in _events(testbed, recipe_file, settings, spans, Path(folder)):
            if event["event"] == "ranks":
                pids = event["pids"]
                continue
            seconds, waited_before, waited = event["elapsed_ns"] / NS_PER_S, waited, waited_s(pids)
            if len(steps) < WARM_UP_STEPS:
                plan = _plan(testbed, requests) or plan
            began_s = event["ended_s"] - seconds
            steps.append(seconds)
            on_step(
                StepEvent(
                    step=event["step"],
                    seconds=seconds,
                    began_s=began_s,
                    use=watch.use_between(began_s, event["ended_s"]),
                    waited_s=max(waited - waited_before, 0.0),  # ranks may have ended after the last
                    plan=plan,
                )
            )
        if plan is None:
            raise UnavailableError(Mistake(where="training on the testbed", found="ended without a step"))
        return TestbedTraining(step_s=tuple(steps), plan=plan, readings=(watch.first, watch.read()))


def _plan(testbed: Testbed, requests: CommTrace) -> StepPlan | None:
    """Return the plan of a step on the connections that there are; None where they have gone with the run."""
    connections = list(read_connections(testbed.built))
    if not connections:
        return None
    paths = kernel_paths(testbed.built, connections)
    return StepPlan(requests=requests, paths=paths, num_ports=testbed.fabric.num_ports)


def _events(
    testbed: Testbed, recipe_file: Path, settings: Mapping[str, Any], spans: Path | None, folder: Path
) -> Iterator[dict[str, Any]]:
    """Yield what the ranks report until they have ended; raises UnavailableError with a failed one's last words."""
    hosts = [
        {
            "name": host,
            "namespace": testbed.built.namespace(host),
            "interface": rails[0],
            "address": testbed.address(host),
        }
        for host, rails in testbed.interfaces().items()
    ]
    job = folder / "job.json"
    files = {"recipe": str(recipe_file), "spans": None if spans is None else str(spans)}
    job.write_text(json.dumps({"hosts": hosts, "settings": dict(settings), **files}))
    command = [*ending_with_parent(), *module_command("fabrictune.validate.testbed_ranks", str(job))]
    with (folder / "errors.txt").open("w+") as errors, _running(command, errors) as process:
        assert process.stdout
        for line in process.stdout:
            yield json.loads(line)
        if process.wait():
            errors.seek(0)
            said = "\n".join(errors.read().splitlines()[-8:])
            raise UnavailableError(Mistake(where="training on the testbed", found=f"failed\n{said}"))


@contextmanager
def _running(command: list[str], errors: Any) -> "Iterator[subprocess.Popen[str]]":
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)  # noqa: S603  # ours
    try:
        yield process
    finally:
        process.terminate()
        process.wait()
        assert process.stdout
        process.stdout.close()
