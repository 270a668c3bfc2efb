"""What a start-up of 2,048 ranks costs its store, in the order of earlier torch and in ours: TP 8, PP 8, DP 32.

Emulated ranks on this machine against real servers (`collectives/startup/storm`). Requests are counted, and exact for
the ordered patterns; the times are of one run, for the earlier patterns take a minute or more each.

Run: `python -m benchmarks.run startup_storm`
"""

from typing import Any

from fabrictune.collectives.startup.storm.experiment import StormResult, StormSpec, run_storms

NUM_RANKS = 2048


def benchmarks() -> list[dict[str, Any]]:
    """Return requests, server processor time and wall time of every pattern, as rows of benchmarks/results.json."""
    return [row for result in run_storms(StormSpec(num_ranks=(NUM_RANKS,))) for row in _rows(result)]


def _rows(result: StormResult) -> list[dict[str, Any]]:
    name = f"collectives.startup-{result.pattern.name}-{NUM_RANKS}"
    closed = f"closed form {result.num_requests_expected:,}" + ("" if result.pattern.is_exact else " or more")
    return [
        {"name": f"{name}.requests", "value": float(result.num_requests), "unit": "requests", "spread": closed},
        {"name": f"{name}.server-cpu", "value": result.server_cpu_s, "unit": "s", "spread": "one run"},
        {"name": f"{name}.wall-time", "value": result.wall_s, "unit": "s", "spread": "one run"},
    ]
