"""What the packet engine's rarer features cost: the pinned permutations of `packet_engine`, each with one more of them.

The score is the same closed count of hops over processor time; what a feature sends again is work, but does not count.

Run: `python -m benchmarks.run engine_features`
"""

from dataclasses import replace
from typing import Any

from benchmarks.packet_engine import CASES, CONFIG, LAW_SETTINGS, SEED, pinned_case, run_to_the_end
from fabrictune.cc.compiler import compile_law
from fabrictune.cc.laws import load_law
from fabrictune.netsim.config.host import HostConfig
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.config.path_choice import PathChoiceConfig
from fabrictune.netsim.config.queues import PriorityConfig, QueuesConfig
from fabrictune.netsim.config.transport import TransportConfig
from fabrictune.netsim.engine_inputs.inputs import make_engine_inputs

RUNS = 3
# Longer than any difference between paths here, so that nothing is sent again for being late.
PATIENT = TransportConfig(reliability="selective-repeat", reorder_window_ns=1_000_000)
FEATURES: dict[str, PacketConfig] = {
    "lean": CONFIG,
    "selective-repeat": replace(CONFIG, transport=PATIENT),
    "spraying": replace(CONFIG, transport=PATIENT, path_choice=PathChoiceConfig(mode="spray")),
    "adaptive": replace(CONFIG, transport=PATIENT, path_choice=PathChoiceConfig(mode="adaptive")),
    "ars": replace(CONFIG, transport=PATIENT, path_choice=PathChoiceConfig(mode="ars")),
    "host-links": replace(CONFIG, host=HostConfig(pcie_generation=5)),
    "acknowledgements-with-data": replace(CONFIG, queues=QueuesConfig(acknowledgement_class="data")),
    "lossless-priority": replace(CONFIG, queues=QueuesConfig(priorities=(PriorityConfig(priority=3, lossless=True),))),
}
LAWS: dict[str, dict[str, float]] = {"none": {}, "dcqcn": LAW_SETTINGS}


def benchmarks() -> list[dict[str, Any]]:
    """Return packet-hops a second, as rows of benchmarks/results.json."""
    laws = {name: compile_law(load_law(name), settings) for name, settings in LAWS.items()}
    rows = []
    for case in CASES:
        network, traffic, num_hops = pinned_case(case)
        for feature, config in FEATURES.items():
            for name, law in laws.items():
                inputs = make_engine_inputs(network, traffic, law, config, seed=SEED, probe=None)
                rates = sorted(num_hops / run_to_the_end(inputs, law)[0] for _ in range(RUNS))
                rows.append(
                    {
                        "name": f"netsim.features-{case}.{feature}.{name}",
                        "value": rates[RUNS // 2],
                        "unit": "hops/s per core",
                        "spread": f"{rates[0] / 1e6:.1f} to {rates[-1] / 1e6:.1f} M over {RUNS} runs",
                    }
                )
    return rows
