"""One rank of a collective benchmark or a training on a node: settings on standard input, one JSON value as its result.

`python -m fabrictune.validate.cluster.nodes.rank_process`. Rank 0 prints the tables and findings of its record, the
others an empty object; what libraries print goes to standard error.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from fabrictune.collectives.startup.launchers import Launched
from fabrictune.foundation.errors import FabrictuneError
from fabrictune.foundation.run_tables.rows import to_rows

if TYPE_CHECKING:
    from fabrictune.foundation.records import RunRecord

RECIPE = "tiny"


def run_collectives(launched: Launched, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Measure collectives as one rank; raises FabrictuneError."""
    from fabrictune.collectives.measurement.record import make_bench_record
    from fabrictune.collectives.measurement.spec import BenchSpec
    from fabrictune.collectives.measurement.torchrun import bench_as_rank

    started, backend = time.perf_counter(), settings["backend"]
    spec = BenchSpec(**{**settings["spec"], "names": tuple(settings["spec"]["names"])})
    samples = bench_as_rank(launched, spec, backend=backend, timeout_s=settings["limit_s"])
    if launched.rank:
        return {}
    return _values(make_bench_record(spec, samples, backend=backend, started=started), "measurements")


def run_training(launched: Launched, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Train the smallest bundled recipe as one rank; raises FabrictuneError."""
    from fabrictune.trainer_probe.recipes.files import find_recipe, load_recipe
    from fabrictune.trainer_probe.training.outcome import make_record
    from fabrictune.trainer_probe.training.run import run_recipe

    started = time.perf_counter()
    result = run_recipe(
        lambda: load_recipe(find_recipe(RECIPE), settings["recipe"], origin="validate cluster"),
        launched,
        on_step=lambda recipe, report: None,
        timeout_s=settings["limit_s"],
        startup_timeout_s=settings["limit_s"],
    )
    if result is None:
        return {}
    recipe, outcome = result
    return _values(make_record(recipe, outcome, started=started), "training")


PARTS: Mapping[str, Callable[[Launched, Mapping[str, Any]], dict[str, Any]]] = {
    "collectives": run_collectives,
    "training": run_training,
}


def _values(record: "RunRecord", table: str) -> dict[str, Any]:
    return {
        "rows": to_rows(record.tables[table]),
        "findings": [asdict(finding) for finding in record.findings],
        "checks": [check.as_json() for check in record.checks or ()],
    }


def main() -> None:
    """Run the part that the settings name."""
    results = os.dup(1)
    os.dup2(2, 1)
    settings = json.load(sys.stdin)
    import torch

    torch.set_num_threads(1)
    try:
        answer: dict[str, Any] = {"result": PARTS[settings["part"]](Launched(**settings["launched"]), settings)}
    except FabrictuneError as error:
        answer = {"error": str(error)}
    with os.fdopen(results, "w") as file:
        json.dump(answer, file)


if __name__ == "__main__":
    main()
